import { chmodSync, lstatSync, opendirSync, renameSync, rmSync } from 'node:fs'
import { join, relative } from 'node:path'
import { sqliteFiles } from '../setup/private-file.ts'
import type { Places } from '../setup/places.ts'

/** The most entries of a state: a runner leaves some dozens. */
const mostEntries = 10_000
const deepest = 20
const mostTold = 5

/** Takes away what a run made of a folder; what cannot be removed goes with the volume. */
export function clear(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true })
  } catch {
    renameSync(path, `${path}.${crypto.randomUUID()}`)
  }
}

/**
 * Makes of the state that the runner of a lost sandbox left, which its run could write to, one that a runner can read: folders and plain files,
 * both its own. All else is taken away unread: links, pipes, sockets, files longer than the whole volume may be, a folder at the
 * place of a file. Returns what that was, for people. May run again after it was killed.
 */
export function tidyLeftState(
  { stateDir, journal, spool, settings }: Places,
  { mostBytes }: { mostBytes: number },
): string[] {
  const told: string[] = []
  const tell = (path: string, what: string) => {
    if (told.length < mostTold) told.push(`${JSON.stringify(relative(join(stateDir, '..'), path))} is ${what}.`)
  }
  if (isFolder(stateDir) === false) {
    tell(stateDir, 'no folder')
    clear(stateDir)
  }
  if (isFolder(stateDir) === null) return told
  chmodSync(stateDir, 0o700)
  for (const path of [settings, ...[journal, spool].flatMap((each) => [each, `${each}.reserve`, ...sqliteFiles(each)])])
    if (isFolder(path) === true) {
      tell(path, 'a folder')
      // It may hold anything: it goes with the volume.
      renameSync(path, `${path}.${crypto.randomUUID()}`)
    }
  let entries = 0
  const look = (folder: string, depth: number) => {
    chmodSync(folder, 0o700)
    const dir = opendirSync(folder)
    try {
      for (let entry = dir.readSync(); entry !== null; entry = dir.readSync()) {
        const path = join(folder, entry.name)
        if (++entries > mostEntries || depth > deepest) throw new Error(`${folder} holds more than a runner makes.`)
        // No runner makes such a name, and whoever looks for files by it finds none.
        if (entry.name.includes('\ufffd')) continue
        if (entry.isDirectory()) {
          look(path, depth + 1)
          continue
        }
        const trouble = entry.isFile() ? takeFile(path, mostBytes) : 'no file'
        if (trouble === null) continue
        tell(path, trouble)
        rmSync(path, { force: true })
      }
    } finally {
      dir.closeSync()
    }
  }
  look(stateDir, 0)
  return told
}

/** Whether a folder is there; null: nothing is. A link is no folder, wherever it leads. */
export function isFolder(path: string): boolean | null {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() ?? null
}

/** Makes a file readable, or returns what is wrong with it. */
function takeFile(path: string, mostBytes: number): string | null {
  chmodSync(path, 0o600 | (lstatSync(path).mode & 0o100))
  return lstatSync(path).size > mostBytes ? 'longer than its volume may be' : null
}
