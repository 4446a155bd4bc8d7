import { realpathSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { readRegularFile } from '../../change-set/regular-file.ts'

/** A `.git` file names one folder. */
const maxGitFileBytes = 8_192

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

function addWithParents(found: Set<string>, folder: string): void {
  for (let at = folder; !found.has(at); at = dirname(at)) found.add(at)
}

function mainCheckoutOf(folder: string): string | null {
  try {
    // Another run may exchange it for a pipe at this moment.
    const bytes = readRegularFile(resolve(folder, '.git'), { maxBytes: maxGitFileBytes, followLinks: true })
    const [, gitDir] = /^gitdir: *(.+?) *$/m.exec(bytes?.toString('utf8') ?? '') ?? []
    const [, main] =
      /^(.+)\/\.git\/worktrees\/[^/]+\/?$/.exec(gitDir === undefined ? '' : resolve(folder, gitDir)) ?? []
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
