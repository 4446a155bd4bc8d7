import { lstat, readlink } from 'node:fs/promises'
import type { LinkReader } from '../../../shared/permissions/path-lookup.ts'

/** The file system of this machine. */
export const machineLinks: LinkReader = {
  readlink: (path) => readlink(path),
  isFolder: async (path) => (await lstat(path)).isDirectory(),
}
