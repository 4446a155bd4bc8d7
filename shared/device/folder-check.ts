import { z } from 'zod'
import { cutText } from './bounds.ts'

export const folderStates = ['ok', 'missing', 'not_a_directory', 'not_permitted'] as const

/** The number of its folders that a device watches and reports without being asked. */
export const watchedFolders = 64

/** Says where a folder of the device lies. */
export const servedFolder = z.object({ shortId: z.string().max(64), rootPath: z.string().max(4096) })
export type ServedFolder = z.infer<typeof servedFolder>

/** A folder as its device says of it whenever it changes. */
export const folderFacts = z.object({
  state: z.enum(folderStates),
  /** The branch that is checked out; null: none is, or there is no repository. */
  branch: z.string().max(1000).nullable(),
})
export type FolderFacts = z.infer<typeof folderFacts>

/** The limit of a path: no system opens a longer one. */
const path = cutText(4_096)

/** A device's report on a folder: the path as given, the real path, and its git remotes. */
export const folderCheck = z.object({
  rootPath: path,
  state: z.enum(folderStates),
  /** The path with every symlink resolved; null when it does not exist. */
  realPath: path.nullable(),
  isSymlink: z.boolean(),
  writable: z.boolean(),
  git: z
    .object({
      topLevel: path,
      branch: cutText(1_000).nullable(),
      commit: cutText(200).nullable(),
      remotes: z.array(z.object({ name: cutText(1_000), url: cutText(4_096) })).max(100),
    })
    .nullable(),
  message: cutText(2_000).nullable(),
})
export type FolderCheck = z.infer<typeof folderCheck>
