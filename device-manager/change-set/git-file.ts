import { realpathSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { readRegularFile } from './regular-file.ts'

const maxBytes = 8_192

/** The git folder that a `.git` file names, as one of a linked working tree or a submodule does; null: there is no such file. */
export function namedGitFolder(folder: string): string | null {
  try {
    const file = readRegularFile(join(folder, '.git'), { maxBytes, followLinks: false })
    const named = /^gitdir: (.+?)[\r\n]*$/.exec(file?.toString('utf8') ?? '')?.[1]
    return named === undefined ? null : resolve(folder, named)
  } catch {
    return null
  }
}

/** The same without links; null as well when it leads nowhere. */
export function gitFileTarget(topLevel: string): string | null {
  try {
    const named = namedGitFolder(topLevel)
    return named === null ? null : realpathSync(named)
  } catch {
    return null
  }
}
