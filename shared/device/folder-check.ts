import { z } from 'zod'

/** A device's report on a folder: the path as given, the real path, and its git remotes. */
export const folderCheck = z.object({
  rootPath: z.string(),
  state: z.enum(['ok', 'missing', 'not_a_directory', 'not_permitted']),
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
