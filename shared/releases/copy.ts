// How this copy of svc was put on its machine, which says how it is upgraded. The build writes it beside the programs.

/** The file's name, in the folder that has the programs' folders. */
export const copyFile = 'copy.json'
/** The public key that later releases must be signed by (PEM), beside it. */
export const copyKeyFile = 'release-key.pem'

/** `tarball`: unpacked, or installed into a folder of versions (`svc install`). */
export const copyKinds = ['tarball', 'npm', 'deb'] as const
export type CopyKind = (typeof copyKinds)[number]

export interface Copy {
  kind: CopyKind
  version: string
  commit: string
}

/** Names in a folder that has several versions of svc. */
export const installNames = {
  /** A folder for each version. */
  versions: 'versions',
  /** A link to the version that runs. */
  current: 'current',
  /** A link to the one before, to which `svc upgrade --rollback` returns. */
  previous: 'previous',
  /** Programs and natives, in a version. */
  lib: 'lib',
} as const

/**
 * The same path by way of the link `current`, for what is started later, when another version may be current; the path itself where it does
 * not lie in the current version of such a folder. `realPath` returns null for what is not there.
 */
export function throughCurrent(file: string, realPath: (path: string) => string | null): string {
  const found = new RegExp(`^(.*)/${installNames.versions}/[^/]+/`).exec(file)
  if (found === null) return file
  const [version, prefix = ''] = found
  const through = `${prefix}/${installNames.current}/${file.slice(version.length)}`
  const real = realPath(file)
  return real !== null && realPath(through) === real ? through : file
}
