export interface StoredFilesQuery {
  /** 1–200 */
  limit: number;
  /** Only files that come after this one of an earlier page. */
  after?: StoredFile | undefined;
}

export interface StoredFiles {
  /** Of the files of all tasks together. */
  bytes: number;
  oldest: StoredFile[];
}

/** The file of a task that has succeeded; its record may be damaged. */
export interface StoredFile {
  /** Of the task. */
  id: string;
  seq: number;
  /** At least 1: empty files are not listed. */
  bytes: number;
  /** `finished_at` of the task. */
  finishedAt: string;
}
