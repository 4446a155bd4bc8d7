import { existsSync, realpathSync } from 'node:fs'
import { join, resolve, dirname } from 'node:path'
import { readRegularFile } from './regular-file.ts'

/** A `.git` file names one folder. */
const maxBytes = 8_192

/** The git folder that a `.git` file names, as one of a linked working tree or a submodule does; null: there is no such file. */
export function namedGitFolder(folder: string): string | null {
  try {
    const file = readRegularFile(join(folder, '.git'), { maxBytes, followLinks: false })
    const named = /^gitdir: ([^\r\n]+)[\r\n]*$/.exec(file?.toString('utf8') ?? '')?.[1]
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

/**
 * Wherever a harness may look for what a person has said of the repository that `cwd` lies in: the folder and all above it,
 * as it is given and without links, and the same for the main checkout of a linked worktree.
 */
export function foldersAround(cwd: string): string[] {
  const found = new Set<string>()
  for (const folder of [cwd, realOr(cwd)]) addWithParents(found, folder)
  for (const folder of found) {
    const main = mainCheckoutOf(folder)
    if (main !== null) addWithParents(found, main)
  }
  return [...found]
}

/** The folder and those above it, up to the nearest that has a `.git`; the folder alone where it lies in no repository. */
export function repositoryFolders(cwd: string): string[] {
  const folders = [cwd]
  for (let at = cwd; !existsSync(join(at, '.git')); folders.push(at)) {
    if (at === dirname(at)) return [cwd]
    at = dirname(at)
  }
  return folders
}

function addWithParents(found: Set<string>, folder: string): void {
  for (let at = folder; !found.has(at); at = dirname(at)) found.add(at)
}

function mainCheckoutOf(folder: string): string | null {
  try {
    // Another run may exchange it for a pipe at this moment.
    const bytes = readRegularFile(resolve(folder, '.git'), { maxBytes, followLinks: true })
    const gitDir = /(?:^|\n)gitdir: *([^\r\n]+)/.exec(bytes?.toString('utf8') ?? '')?.[1]?.trimEnd()
    const [, main] =
      /^([^]+)\/\.git\/worktrees\/[^/]+\/?$/.exec(gitDir === undefined ? '' : resolve(folder, gitDir)) ?? []
    return main === undefined ? null : realOr(main)
  } catch {
    return null
  }
}

function realOr(folder: string): string {
  try {
    return realpathSync(folder)
  } catch {
    return folder
  }
}
