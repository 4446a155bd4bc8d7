import { z } from 'zod'

export const folderStates = ['ok', 'missing', 'not_a_directory', 'not_permitted'] as const

/** The number of its folders that a device watches and reports without being asked. */
export const watchedFolders = 64

/** Says where a folder of the device lies. */
export const servedFolder = z.object({ shortId: z.string().max(64), rootPath: z.string().max(4096) })
export type ServedFolder = z.infer<typeof servedFolder>

/** A folder as its device says of it whenever it changes. */
export const folderFacts = z.object({
  state: z.enum(folderStates),
  /** null: no repository, or no branch is checked out. */
  branch: z.string().max(1000).nullable(),
})
export type FolderFacts = z.infer<typeof folderFacts>

/** A device's report on a folder: the path as given, the real path, and its git remotes. */
export const folderCheck = z.object({
  rootPath: z.string(),
  state: z.enum(folderStates),
  /** The path with every symlink resolved; null when it does not exist. */
  realPath: z.string().nullable(),
  isSymlink: z.boolean(),
  writable: z.boolean(),
  git: z
    .object({
      topLevel: z.string(),
      branch: z.string().nullable(),
      commit: z.string().nullable(),
      remotes: z.array(z.object({ name: z.string(), url: z.string() })).max(100),
    })
    .nullable(),
  message: z.string().nullable(),
})
export type FolderCheck = z.infer<typeof folderCheck>
