import { lstatSync, opendirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** The most entries that are looked at: git would need longer for more than it has. */
const mostEntries = 2_000_000

/**
 * Takes pipes, sockets and the like out of a clone, and in its `.git` also links that lead to such or nowhere: git takes none of them along, and
 * waits for ever at one that stands where it expects a file (`.gitignore`, `.git/HEAD`).
 */
export function takeAwayPipes(clone: string): void {
  const left = [{ folder: clone, isOfGit: false }]
  let entries = 0
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { folder, isOfGit } = next
    for (const { name, kind } of entriesOf(folder)) {
      if (++entries > mostEntries) return
      const path = join(folder, name)
      if (kind === 'folder') left.push({ folder: path, isOfGit: isOfGit || name === '.git' })
      else if (kind === 'other' || (kind === 'link' && (isOfGit || name === '.git') && !leadsToFile(path))) remove(path)
    }
  }
}

/** A pipe that cannot be removed keeps git waiting, until the time of git is over. */
function remove(path: string): void {
  try {
    rmSync(path, { force: true })
  } catch {
    // Its folder cannot be written to.
  }
}

type Kind = 'folder' | 'file' | 'link' | 'other'

/** The entries of a folder; none of one that cannot be read, since git cannot read it either. */
function* entriesOf(folder: string): Generator<{ name: string; kind: Kind }> {
  try {
    // A folder that was exchanged for a link meanwhile is not entered.
    if (!lstatSync(folder).isDirectory()) return
    const dir = opendirSync(folder)
    try {
      for (let entry = dir.readSync(); entry !== null; entry = dir.readSync()) {
        const { name } = entry
        const kind = entry.isDirectory()
          ? 'folder'
          : entry.isFile()
            ? 'file'
            : entry.isSymbolicLink()
              ? 'link'
              : 'other'
        yield { name, kind }
      }
    } finally {
      dir.closeSync()
    }
  } catch {
    return
  }
}

function leadsToFile(link: string): boolean {
  try {
    const stat = statSync(link)
    return stat.isFile() || stat.isDirectory()
  } catch {
    return false
  }
}
