import { randomUUID } from 'node:crypto'
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  cpSync,
  existsSync,
  fchmodSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { copyKeyFile, type Copy } from '../../shared/releases/copy.ts'
import { installNames } from '../../shared/lib/stable-paths.ts'
import { CliError } from '../errors/cli-error.ts'
import { readCopy } from './this-copy.ts'

/**
 * A folder of versions of svc: `versions/0.2.0`, and the links `current` and `previous`. A version never changes once it has its name, and a
 * switch is the rename of a link: whoever starts a program by way of `current` finds one version or the other, whole.
 */
export class Prefix {
  readonly folder: string
  private readonly versions: string

  constructor(folder: string) {
    this.folder = folder
    this.versions = join(folder, installNames.versions)
  }

  /**
   * Does the work as the only one that changes this folder. The lock goes with the process that has it. Fails with `upgrade_under_way`
   * where another one works.
   */
  async alone<Result>(work: () => Promise<Result>): Promise<Result> {
    makeFolder(this.versions)
    // Imported here: the library has native code, which other commands do not load.
    const { default: BetterSqlite3 } = await import('better-sqlite3')
    demandWritable(this.versions)
    const path = join(this.folder, lockName)
    keepFromOthers(path)
    const lock = new BetterSqlite3(path, { timeout: 0 })
    try {
      lock.exec('begin exclusive')
    } catch (error) {
      lock.close()
      if (String((error as { code?: unknown }).code) !== 'SQLITE_BUSY') throw error
      throw new CliError('upgrade_under_way', `Another svc installs or upgrades in ${this.folder}.`, {
        remediation: 'Wait until it has ended, then type the command again.',
      })
    }
    try {
      this.removeDrafts()
      return await work()
    } finally {
      lock.close()
    }
  }

  /**
   * Fails where the folder has things of others: all of it is kept from runs, and what is removed later is what svc put here. Nothing is
   * made.
   */
  refuseOthers(): void {
    const other = namesIn(this.folder).find((name) => !ownNames.has(name) && !name.startsWith(drafts))
    if (other === undefined) return
    throw new CliError('folder_taken', `${this.folder} has things of others: ${other}.`, {
      remediation: 'Name a folder of its own with --prefix, such as one that is not there yet.',
    })
  }

  /** Removes all versions, and the folder unless somebody put other things there. */
  remove(): void {
    for (const name of namesIn(this.folder))
      if (ownNames.has(name) || name.startsWith(drafts))
        rmSync(join(this.folder, name), { recursive: true, force: true })
    if (namesIn(this.folder).length === 0) rmSync(this.folder, { recursive: true, force: true })
  }

  /** The copy that `current` (or `previous`) leads to, whoever runs; null: none, or one that cannot be read. */
  copyAt(link: 'current' | 'previous'): Copy | null {
    return readCopy(join(this.folder, installNames[link], installNames.lib))
  }

  /** The name of the folder that the link leads to; null: it leads to none. */
  private nameAt(link: 'current' | 'previous'): string | null {
    try {
      return basename(readlinkSync(join(this.folder, installNames[link])))
    } catch {
      return null
    }
  }

  /** Whether both links lead to one version. */
  areSame(): boolean {
    return this.nameAt('current') === this.nameAt('previous')
  }

  /** A new folder, in which a version is made; what a crash leaves of it is removed by the next that works here. */
  draft(): string {
    const draft = join(this.versions, `${drafts}${randomUUID()}`)
    makeFolder(draft)
    return draft
  }

  private removeDrafts(): void {
    for (const name of readdirSync(this.versions))
      if (name.startsWith(drafts)) rmSync(join(this.versions, name), { recursive: true, force: true })
  }

  /** Copies a whole copy to a draft. */
  copied(from: string): string {
    const draft = this.draft()
    cpSync(from, draft, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true })
    return draft
  }

  /** Gives a draft its name, where nothing may change it any more, and returns the name. One that is there already is kept. */
  keep(draft: string, { version, commit }: Copy): string {
    const taken = readCopy(join(this.versions, version, installNames.lib))
    // Two builds of a version, as those of a branch: each has a folder.
    const name = taken === null || taken.commit === commit ? version : `${version}+${commit.slice(0, 12)}`
    const folder = join(this.versions, name)
    if (readCopy(join(folder, installNames.lib)) !== null) {
      rmSync(draft, { recursive: true, force: true })
      return name
    }
    if (isForAll) openToAll(draft)
    flush(draft)
    rmSync(folder, { recursive: true, force: true })
    renameSync(draft, folder)
    flushFolder(this.versions)
    return name
  }

  /** Makes a version the one that is started from now on. Returns whether it was another one. */
  switchTo(name: string): boolean {
    const before = this.nameAt('current')
    if (before === name) return false
    if (before !== null && existsSync(join(this.versions, before))) this.link('previous', before)
    this.link('current', name)
    return true
  }

  /** Makes the version before the current one again, and the other way round. Returns its name; null: there is none. */
  switchBack(): string | null {
    const before = this.nameAt('previous')
    if (before === null || readCopy(join(this.versions, before, installNames.lib)) === null) return null
    this.switchTo(before)
    return before
  }

  private link(link: 'current' | 'previous', name: string): void {
    const draft = join(this.folder, `${drafts}${randomUUID()}`)
    symlinkSync(join(installNames.versions, name), draft)
    renameSync(draft, join(this.folder, installNames[link]))
    flushFolder(this.folder)
  }

  /**
   * Removes the versions that nobody needs: not those of the two links, nor one that a process was started from, nor one that was in use within
   * the last days. `commandLines`: of all processes; null keeps all. Returns the names.
   */
  removeOld(commandLines: string | null, now: number): string[] {
    if (commandLines === null) return []
    const kept = new Set([this.nameAt('current'), this.nameAt('previous')])
    const old = readdirSync(this.versions).filter((name) => {
      const folder = join(this.versions, name)
      if (kept.has(name) || name.startsWith(drafts) || commandLines.includes(`${folder}/`)) return false
      return [folder, join(folder, installNames.lib, 'used')].every((path) => {
        const stat = statSync(path, { throwIfNoEntry: false })
        return stat === undefined || now - Math.max(stat.mtimeMs, stat.ctimeMs) > oldMs
      })
    })
    for (const name of old) rmSync(join(this.versions, name), { recursive: true, force: true })
    return old
  }

  /** The path of a program by way of the current version. */
  program(name: string): string {
    return join(this.folder, installNames.current, 'bin', name)
  }
}

const drafts = '.making-'
const lockName = 'lock'
/** The key of whoever makes the releases here, and where these lie, as a person said. */
export const keptNames = { key: copyKeyFile, source: 'releases' } as const
const ownNames = new Set<string>([
  installNames.versions,
  installNames.current,
  installNames.previous,
  lockName,
  ...Object.values(keptNames),
])

/** Whoever can read the file of the lock can hold it, which would keep everybody else from upgrading. */
function keepFromOthers(path: string): void {
  const { O_APPEND, O_CREAT, O_NOFOLLOW, O_WRONLY } = constants
  try {
    const file = openSync(path, O_APPEND | O_CREAT | O_NOFOLLOW | O_WRONLY, 0o600)
    try {
      // Where several accounts may write to the folder, the file may be that of another one.
      if (fstatSync(file).uid === process.getuid?.()) fchmodSync(file, 0o600)
    } finally {
      closeSync(file)
    }
  } catch (error) {
    throw unwritable(path, error)
  }
}

const namesIn = (folder: string): string[] => (existsSync(folder) ? readdirSync(folder) : [])
const oldMs = 3 * 86_400_000

/** What root installs is for all accounts of the machine, whatever the umask of root's shell is. */
const isForAll = process.getuid?.() === 0

function makeFolder(folder: string): void {
  const before = isForAll ? process.umask(0o022) : null
  try {
    mkdirSync(folder, { recursive: true })
  } catch (error) {
    throw unwritable(folder, error)
  } finally {
    if (before !== null) process.umask(before)
  }
}

/** The umask of whoever unpacked the files may have kept them from others. */
function openToAll(folder: string): void {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (entry.isDirectory()) chmodSync(path, 0o755)
    else if (entry.isFile()) chmodSync(path, (statSync(path).mode & 0o100) === 0 ? 0o644 : 0o755)
  }
  chmodSync(folder, 0o755)
}

function demandWritable(folder: string): void {
  try {
    accessSync(folder, constants.W_OK)
  } catch (error) {
    throw unwritable(folder, error)
  }
}

const unwritable = (folder: string, cause: unknown): CliError =>
  new CliError('folder_unwritable', `${folder} cannot be written to: ${(cause as Error).message}.`, {
    remediation: 'Type the command as a user that may write there (sudo), or install to another folder with --prefix.',
    cause,
  })

function flush(folder: string): void {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true }))
    if (entry.isFile() || entry.isDirectory()) flushFile(join(entry.parentPath, entry.name))
  flushFile(folder)
}

const flushFolder = (folder: string): void => flushFile(folder)

export function flushFile(path: string): void {
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/** Leads `link` to `to`. Fails where something else has its name, unless that leads into the same folder of versions. */
export function linkProgram(link: string, { to, prefix }: { to: string; prefix: string }): void {
  refuseTaken(link, prefix)
  makeFolder(dirname(link))
  const draft = `${link}.${randomUUID()}`
  symlinkSync(to, draft)
  renameSync(draft, link)
}

/** Fails where something else has the name of a link that `svc install` would make. */
export function refuseTaken(link: string, prefix: string): void {
  const stat = lstatSync(link, { throwIfNoEntry: false })
  if (stat === undefined || isLinkInto(link, prefix)) return
  throw new CliError('name_taken', `${link} is there already and does not lead to ${prefix}.`, {
    remediation: 'Name another folder with --bin, or remove it.',
  })
}

/** Whether the path is a link to a program of this folder, by its text, or by way of a link such as that of a home folder. */
export function isLinkInto(link: string, prefix: string): boolean {
  try {
    const to = readlinkSync(link)
    if (to.startsWith(`${prefix}/`)) return true
    // PREFIX/current/bin/PROGRAM.
    return realpathSync(dirname(dirname(dirname(resolve(dirname(link), to))))) === realpathSync(prefix)
  } catch {
    return false
  }
}
