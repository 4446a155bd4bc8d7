/** Limits of what a change-set holds and costs. Bytes, milliseconds, counts. */
export interface ChangeSetLimits {
  /** More changed paths than this: `too_large`. */
  files: number
  /** A file's patch above this is left out (`patchOmitted`); the file is still listed. */
  filePatchBytes: number
  /** All patches together above this: `too_large`. */
  diffBytes: number
  /** A file above this is never read: it is listed as binary, and told as changed by its size and time. */
  fileBytes: number
  /** Untracked files hashed when the base is taken; those beyond are watched by size and time alone. */
  baseFiles: number
  baseBytes: number
  /** Nested repositories looked at. */
  nested: number
  /** Output of one listing. */
  listingBytes: number
  /** One git process. */
  gitMs: number
}

export const defaultLimits: ChangeSetLimits = {
  files: 2_000,
  filePatchBytes: 256 * 1024,
  diffBytes: 4 * 1024 * 1024,
  fileBytes: 32 * 1024 * 1024,
  baseFiles: 10_000,
  baseBytes: 256 * 1024 * 1024,
  nested: 50,
  listingBytes: 64 * 1024 * 1024,
  gitMs: 60_000,
}
