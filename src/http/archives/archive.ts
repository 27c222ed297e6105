import { createHash } from "node:crypto";
import type { Readable } from "node:stream";
import { crc32 } from "node:zlib";
import { createKeyedMutex } from "../../async/keyed-mutex.ts";
import { SharedCache } from "../../async/shared-cache.ts";
import type { FileStore } from "../../files/files.ts";
import type { Task } from "../../model/task.ts";
import type { IntRange } from "../../net/byte-range.ts";
import type { Template } from "../../runner/library/template.ts";
import { createPaths } from "../../runner/library/unique-names.ts";
import { type FileStreams, type Recipient, streamChunks } from "../responses/file-streams.ts";
import { openFile } from "../responses/send-file.ts";
import { createTurns } from "../responses/turns.ts";
import { filesOf } from "../routes/file.ts";
import { layOutZip, type ZipEntry, ZipSize } from "./zip-layout.ts";

/** All files of one or more tasks as one ZIP archive: the same bytes whenever these files are the same. */
interface Archive {
  /** Bytes. */
  size: number;
  /** Identifies its content, hexadecimal. */
  id: string;
  files: readonly ArchivedFile[];
}

/** `name` is a path in the archive, where no other has it, whatever its case or normal form. */
interface ArchivedFile extends ZipEntry {
  taskId: string;
  /** Of the file store. */
  number: number;
  sha256: string;
}

/** Changes whenever the same files would become other bytes. */
const formatVersion = 1;

/** Makes an archive of the files of tasks, under the paths that they would have in a library without other files. */
export function createArchiver(template: Template) {
  const pathsOf = createPaths(template);
  const files: ArchivedFile[] = [];
  const zip = new ZipSize();
  const hash = createHash("sha256").update(`[${formatVersion},[`);
  return {
    add(task: Task): void {
      const found = filesOf(task);
      if (found.length === 0) return;
      const paths = pathsOf({ ...task, files: found });
      const modifiedAt = new Date(task.finished_at ?? task.created_at);
      for (const [number, { size, sha256 }] of found.entries()) {
        const added = { taskId: task.id, number, name: paths[number] ?? "", size, sha256, modifiedAt };
        hash.update((files.length === 0 ? "" : ",") + JSON.stringify(added));
        files.push(added);
        zip.add(added);
      }
    },
    /** Files that were added. */
    get count(): number {
      return files.length;
    },
    /** Returns the archive of what was added; undefined: that was nothing. */
    finish(): Archive | undefined {
      if (files.length === 0) return undefined;
      return { size: zip.total, id: hash.update("]]").digest("hex"), files };
    },
  };
}

/** Parts that are passed over or written in one turn of the event loop. */
const partsAtOnce = 256;

/** Files whose CRC-32 is remembered, of all owners together. */
const maxRemembered = 50_000;

/**
 * Creates a reader of archives. The CRC-32 of a file is computed while it is sent, and remembered; if a range begins after the file's
 * start, the file is read once more, of each owner one file at a time. `uncounted` reads what is not sent.
 */
export function createArchiveStreams(store: FileStore, streams: FileStreams, uncounted: FileStreams) {
  const files = createFileReader(store, uncounted);
  const turns = createTurns();

  async function* readParts(archive: Archive, { start, end }: IntRange, wanted: Wanted): AsyncGenerator<Buffer> {
    const reader = { ...streams, ...wanted };
    const fileAt = (index: number) => archive.files[index] as ArchivedFile;
    let offset = 0;
    let count = 0;
    for (const part of layOutZip(archive.files)) {
      count += 1;
      if (count % partsAtOnce === 0) await turns.wait(wanted.recipient, wanted.recipient.closed);
      const range = { start: Math.max(0, start - offset), end: Math.min(part.length - 1, end - offset) };
      offset += part.length;
      if (range.end < range.start) continue;
      if (part.kind === "bytes") {
        const bytes = await part.write((index) => files.crcOf(fileAt(index), wanted));
        yield bytes.subarray(range.start, range.end + 1);
      } else yield* files.read(fileAt(part.index), range, reader);
    }
  }

  return {
    /**
     * Returns the bytes of `range`, which the archive must have. If a file is gone, the stream fails; if that is the first one, before it
     * has returned any.
     *
     * @param owner Who takes turns with the others in reading files once more.
     */
    open(archive: Archive, range: IntRange, owner: string, client: Recipient): Readable {
      const isSent = () => stream.readableLength === 0 && client.isSent();
      const chunks = readParts(archive, range, { owner, recipient: { ...client, isSent } });
      async function readChunk(): Promise<Buffer | null> {
        const { done, value } = await chunks.next();
        return done === true ? null : value;
      }
      /** Reads two chunks: the first one may be a header, which does not say whether its file can be read. */
      async function readFirst(): Promise<Buffer | null> {
        next = readChunk;
        const first = await readChunk();
        if (first === null) return null;
        // The second one may take its memory.
        const copy = Buffer.from(first);
        return Buffer.concat([copy, (await readChunk()) ?? Buffer.alloc(0)]);
      }
      let next = readFirst;
      const stream = streamChunks(
        () => next(),
        () => chunks.return(undefined),
      );
      return stream;
    },
  };
}

/** Creates a reader of files that remembers the CRC-32 of those that it has read as a whole. */
function createFileReader(store: FileStore, uncounted: FileStreams) {
  const remembered = new SharedCache<{ crc: number }>({ maxSize: maxRemembered });
  const mutex = createKeyedMutex();

  async function* readRange(file: ArchivedFile, range: IntRange, { open, recipient }: Reader): AsyncGenerator<Buffer> {
    if (range.end < range.start) return;
    const { handle, markInUse } = await openFile(store, file.taskId, file, file.number);
    // A file that is not marked may be removed while it is sent, and can still be read to its end.
    const keep = () => markInUse().catch(() => true);
    await keep();
    yield* open(handle, range, keep, recipient);
  }

  async function* readWhole(file: ArchivedFile, reader: Reader): AsyncGenerator<Buffer> {
    let crc = 0;
    for await (const chunk of readRange(file, { start: 0, end: file.size - 1 }, reader)) {
      crc = crc32(chunk, crc);
      yield chunk;
    }
    remembered.set(reader.owner, file.sha256, { crc }, 1);
  }

  return {
    read(file: ArchivedFile, range: IntRange, reader: Reader): AsyncGenerator<Buffer> {
      const isWhole = range.start === 0 && range.end === file.size - 1;
      return isWhole ? readWhole(file, reader) : readRange(file, range, reader);
    },
    async crcOf(file: ArchivedFile, { owner, recipient }: Wanted): Promise<number> {
      const { closed } = recipient;
      return mutex.runExclusive(owner, async () => {
        const known = remembered.get(owner, file.sha256);
        if (known !== undefined) return known.crc;
        if (closed.aborted) throw clientLeftError;
        for await (const _ of readWhole(file, {
          ...uncounted,
          owner,
          recipient: { ...recipient, isSent: () => true },
        })) {
          if (closed.aborted) throw clientLeftError;
        }
        return remembered.get(owner, file.sha256)!.crc;
      });
    },
  };
}

/** What reads a file, and for whom. */
type Reader = Pick<FileStreams, "open"> & Wanted;

/** For whom an archive is read. */
interface Wanted {
  /** Of the files. */
  owner: string;
  recipient: Recipient;
}

/** Nobody gets it. */
const clientLeftError = new Error("the client has left");
