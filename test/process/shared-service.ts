import { join } from "node:path";
import { afterAll, afterEach, beforeAll } from "vitest";
import { makeSharedFolder } from "../folder.ts";
import { openTaskClient, type TaskClient } from "./download-client.ts";
import { type ServiceProcess, startService } from "./service.ts";
import { openStreamReader, save, type StreamReader } from "./stream-client.ts";

/** A service and its client, for all tests of a file; the tasks of a test are deleted after it. */
export class SharedService {
  readonly dataDir = makeSharedFolder();
  service!: ServiceProcess;
  client!: TaskClient;
  readonly #settings: Record<string, string>;

  constructor(settings: Record<string, string>) {
    this.#settings = { DATA_DIR: this.dataDir, ALLOW_NETWORKS: "127.0.0.1/32", ...settings };
    beforeAll(() => this.#start());
    afterEach(() => this.client.deleteAll());
    afterAll(async () => void (await this.end("SIGKILL")));
  }

  async #start(): Promise<void> {
    this.service = await startService(this.#settings);
    this.client = await openTaskClient(this.service.url);
  }

  /** Ends the process, as `ServiceProcess` does. */
  end(signal: NodeJS.Signals) {
    this.client.close();
    return this.service.end(signal);
  }

  /** Starts it again, once it has ended, with the same folder. */
  restart(): Promise<void> {
    return this.#start();
  }

  readStream(id: string): Promise<StreamReader> {
    return openStreamReader(`${this.service.url}/tasks/${id}/stream`);
  }

  /** Saves the file of a task; returns where. */
  async saveFile(id: string): Promise<string> {
    return save(join(this.dataDir, "file"), await (await this.client.file(id)).bytes());
  }
}
