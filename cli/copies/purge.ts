import { existsSync, lstatSync, readdirSync, realpathSync, renameSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { configFiles, dataFiles, placeVariables, stateFiles } from '../../shared/lib/places.ts'
import { CliError } from '../errors/cli-error.ts'
import { flushFile } from './prefix.ts'

// The folders of what people made with svc, as `svc uninstall --purge` backs them up and removes them.

/** Where a folder is, and what a link to it leads to. */
export interface MadeFolder {
  path: string
  real: string
  /** A variable names it, so it may hold things that are not of svc. */
  isNamed: boolean
}

/** What the programs put into folders that a variable names; drafts, locks and copies begin with such a name. */
const ownNames: readonly string[] = [
  ...[configFiles, stateFiles, dataFiles].flatMap((files) => Object.values<string>(files)),
  'server.env',
  'svc.db',
  'bin',
  'compile-cache',
  'daemon.lock',
  'enabled-linger',
  'first-starts',
  'hosts',
  'journal.db',
  'own',
  'restoring',
  'runs',
  'skills',
  'start.room',
  'starts.json',
]

const isOwn = (name: string) =>
  ownNames.some((own) => name === own || (name.startsWith(own) && /^[.-]/.test(name.slice(own.length))))

/** Returns those of the paths that are there. Fails where one leads to no folder. */
export function madeFolders(paths: readonly { path: string; isNamed: boolean }[]): MadeFolder[] {
  return paths
    .filter(({ path }) => lstatSync(path, { throwIfNoEntry: false }) !== undefined)
    .flatMap(({ path, isNamed }) => {
      const stat = statSync(path, { throwIfNoEntry: false })
      if (stat === undefined) return []
      if (stat.isDirectory()) return [{ path, real: realpathSync(path), isNamed }]
      throw new CliError('not_a_folder', `${path} is no folder.`, {
        remediation: `Nothing was removed. See what ${Object.values(placeVariables).join(', ')} name.`,
      })
    })
}

/** Fails where a folder holds what svc did not make: it is removed with all that is in it. `kept`: folders that must outlive it. */
export function refuseShared(folders: readonly MadeFolder[], kept: readonly string[]): void {
  const keptReal = kept.filter((path) => existsSync(path)).map((path) => realpathSync(path))
  const reals = new Set(folders.map(({ real }) => real))
  for (const { path, real, isNamed } of folders) {
    const inside = keptReal.find((other) => `${other}/`.startsWith(real === '/' ? '/' : `${real}/`))
    const other = isNamed ? readdirSync(real).find((name) => !isOwn(name) && !reals.has(join(real, name))) : undefined
    const what = inside ?? (other === undefined ? undefined : join(real, other))
    if (what === undefined) continue
    throw new CliError('folder_shared', `${path} is not of svc alone: ${what} lies in it.`, {
      remediation:
        'Nothing was removed. Move the one or the other, or leave --purge out and remove what is of svc there yourself.',
    })
  }
}

/** Removes a folder and what leads to it. One that cannot go, such as the place of a mounted disk, is left empty. */
export function removeMade({ path, real }: MadeFolder): void {
  try {
    // Whatever lies there by now, no link in its place is followed.
    rmSync(real, { recursive: true, force: true })
  } catch (error) {
    if (!isEmptyFolder(real)) throw error
    return
  }
  if (path !== real) rmSync(path, { force: true })
}

const isEmptyFolder = (path: string): boolean =>
  lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true && readdirSync(path).length === 0

/** By a walk of its own: a recursive `readdir` of Node follows links, out of the folder and in circles. */
function removeSockets(folder: string): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isSocket()) rmSync(path)
    else if (entry.isDirectory()) removeSockets(path)
  }
}

/** Fails before anything is removed where the archive cannot be made whole. */
export async function backUp(archive: string, folders: readonly MadeFolder[]): Promise<void> {
  const { execa } = await import('execa')
  const draft = `${archive}.part`
  const reals = [...new Set(folders.map(({ real }) => real))]
  // Sockets of programs that have ended are no files for tar.
  for (const real of reals) removeSockets(real)
  const from = reals.flatMap((real) => ['-C', dirname(real), `./${basename(real)}`])
  const before = process.umask(0o077)
  try {
    const ended = await execa('tar', ['-czf', draft, ...from], { stdin: 'ignore', reject: false })
    if (ended.failed)
      throw new CliError(
        'no_backup',
        `The backup could not be made: ${(ended.stderr || ended.shortMessage || '').slice(0, 500)}`,
        {
          remediation:
            'Nothing was removed. Make room, or remove the folders yourself. A device manager that ran is stopped: `svc device connect` starts it.',
        },
      )
    // What it replaces is removed next: a power cut must not take both.
    flushFile(draft)
    renameSync(draft, archive)
    flushFile(dirname(archive))
  } finally {
    process.umask(before)
    rmSync(draft, { force: true })
  }
}
