// How this copy of svc was put on its machine, which says how it is upgraded. The build writes it beside the programs.

/** The file's name, in the folder that has the programs' folders. */
export const copyFile = 'copy.json'
/** The public key that later releases must be signed by (PEM), beside it. */
export const copyKeyFile = 'release-key.pem'

/** The programs of a copy, by the names that people type. */
export const programNames = ['svc', 'svc-device', 'svc-server'] as const

/** `tarball`: unpacked, or installed into a folder of versions (`svc install`). */
export const copyKinds = ['tarball', 'npm', 'deb'] as const
export type CopyKind = (typeof copyKinds)[number]

export interface Copy {
  kind: CopyKind
  version: string
  commit: string
}
