import type { LinkReader } from '../../shared/permissions/path-lookup.ts'

/** The file system of this machine, as far as links are told from other things. */
export function linksHere(): LinkReader {
  const { lstat, readlink } = process.getBuiltinModule('node:fs/promises')
  return {
    readlink: (path) => readlink(path),
    isFolder: async (path) => (await lstat(path)).isDirectory(),
  }
}

/** A machine of which nothing is known: each path is what is written. */
export const linksNowhere: LinkReader = {
  readlink: () => Promise.reject(Object.assign(new Error('no such file'), { code: 'ENOENT' })),
  isFolder: () => Promise.resolve(false),
}

/** False, too, where the folder may not be looked at. */
export function isFolderHere(path: string): boolean {
  try {
    return process.getBuiltinModule('node:fs').statSync(path).isDirectory()
  } catch {
    return false
  }
}

export const homeHere = (): string => process.getBuiltinModule('node:os').homedir()
