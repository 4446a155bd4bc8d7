/** A file of a bundle of a skill, as the list of the bundle names it. */
export interface ListedFile {
  path: string
  sizeBytes: number
  /** Hex. */
  sha256: string
  executable: boolean
}

/** The text whose SHA-256 (hex) is the hash of a bundle. `files`: sorted by path. */
export const bundleHashText = (files: readonly ListedFile[]): string =>
  [
    'svc-skill-bundle 1',
    ...files.map(({ path, sizeBytes, sha256, executable }) => JSON.stringify([path, sizeBytes, sha256, executable])),
  ].join('\n')
