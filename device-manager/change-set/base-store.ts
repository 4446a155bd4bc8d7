import type { RunId } from '../../shared/lib/ids.ts'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  closeSync,
  fstatSync,
  openSync,
  statSync,
  unlinkSync,
} from 'node:fs'
import {
  link,
  copyFile,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  rmdir,
  stat,
  unlink,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { z } from 'zod'
import { carriedKeys, renderConfig } from './carried-settings.ts'
import { ChangeSetFailure } from './failure.ts'
import { gitFileTarget } from './git-file.ts'

// Keeps a run's base: a private git folder in svc's own state folder, where nothing of the repository and no tool
// of the run writes. git never looks at more of it than what is listed here: its common folder is fixed (git.ts).
//
//     config, HEAD          written by us; the repository's own config is never in force here
//     index                 the working tree at the base: every tracked and untracked file with its stat data, so
//                           that the end needs to read only what changed since
//     upstream              a link to the repository's own object store
//     objects/              what the base needs and no commit holds (dirty, untracked and staged files); its alternate
//                           is `upstream`. git gc does not look in here. With nothing of that kind it is a link to
//                           `upstream`, and nothing is ever written through it
//     info                  a link to the repository's own, for its exclude and attributes files
//     base.json             where the repository is, and the files known by size and time alone
//
// Nothing in the person's git folder is written but the ref that keeps the base commit.

const watchedFile = z.object({
  /** Bytes of the path as latin1 text, relative to the top level. */
  path: z.string(),
  size: z.string(),
  mtimeNs: z.string(),
  inode: z.string(),
  mode: z.string(),
})
export type WatchedFile = z.infer<typeof watchedFile>

const baseRecord = z.object({
  gitDir: z.string(),
  commonDir: z.string(),
  /** Tells the repository from another one in its place. */
  repositoryMark: z.string().nullable(),
  /** Where a `.git` file of the top level led; its repository stays when another folder comes into the place of that. */
  gitFileTarget: z.string().nullable().default(null),
  /** When the base was taken, in nanoseconds by the clock of the repository's file system; null: not known. */
  moment: z.string().nullable(),
  objectFormat: z.enum(['sha1', 'sha256']),
  settings: z.object({ values: z.partialRecord(z.enum(carriedKeys), z.string()), filters: z.array(z.string()) }),
  /** Identity of the repository's index when the base was taken; null without one. */
  indexMark: z.string().nullable(),
  watched: z.array(watchedFile),
  /** svc's own folders on the device: they are no part of any run. */
  ownFolders: z.array(z.string()).default([]),
})
export type BaseRecord = z.infer<typeof baseRecord>

const runIdPattern = /^[A-Za-z0-9_-]{1,128}$/

/** `<state>/runs/<runId>/change-set` */
const storeName = 'change-set'
export const stateDirOf = (storeDir: string): string => dirname(dirname(dirname(storeDir)))

export function refNameOf(runId: RunId): string {
  if (!runIdPattern.test(runId)) throw new ChangeSetFailure('diff_unavailable', 'The id of the run cannot name a ref.')
  return `refs/svc/runs/${runId}/base`
}

/** Calls that wait, since a handful of small files is made in the time that a thread would need to hear of the first. */
export async function createStore(storeDir: string, record: BaseRecord, fileBytes: number): Promise<void> {
  if (existsSync(storeDir)) rmSync(storeDir, { recursive: true, force: true })
  const at = (name: string) => join(storeDir, name)
  mkdirSync(storeDir, { recursive: true, mode: 0o700 })
  mkdirSync(at('refs'))
  writeFileSync(at('HEAD'), 'ref: refs/heads/none\n')
  writeFileSync(at('config'), configOf(record, fileBytes))
  symlinkSync(join(record.commonDir, 'objects'), at('upstream'))
  symlinkSync('upstream', at('objects'))
  symlinkSync(join(record.commonDir, 'info'), at('info'))
  await linkIndex(record.gitDir, storeDir, 'index')
}

const configOf = (record: BaseRecord, fileBytes: number) =>
  renderConfig(record.settings.values, record.objectFormat, fileBytes)

/** Lets objects be written from here on. No git may be at work in the store. */
export async function ownObjects(storeDir: string): Promise<void> {
  const objects = join(storeDir, 'objects')
  await unlink(objects)
  await mkdir(join(objects, 'info'), { recursive: true })
  // By the link, so that a path no alternates file can hold does no harm.
  await writeFile(join(objects, 'info', 'alternates'), '../upstream\n')
}

interface StorePlace {
  storeDir: string
  topLevel: string
}

/** git would say of a store without objects that it is none, and compare with another repository that stands there now. */
export async function demandObjects({ storeDir, topLevel }: StorePlace, record: BaseRecord): Promise<void> {
  const isOther = record.gitFileTarget !== null && gitFileTarget(topLevel) !== record.gitFileTarget
  if (isOther || markOf(record.commonDir) !== record.repositoryMark)
    throw new ChangeSetFailure('repo_unavailable', 'The repository of the run is gone.')
  const found = await stat(join(storeDir, 'objects')).catch(() => null)
  if (found === null) throw new ChangeSetFailure('diff_unavailable', 'The objects of the repository are gone.')
}

/** Made certain before each use: what a harness may have put there is not in force. */
export async function writeConfig(storeDir: string, record: BaseRecord, fileBytes: number): Promise<void> {
  const text = configOf(record, fileBytes)
  const path = join(storeDir, 'config')
  if ((await readFile(path, 'utf8').catch(() => null)) !== text) await replaceFile(path, text)
}

async function replaceFile(path: string, text: string): Promise<void> {
  const part = `${path}.${process.pid}.${crypto.randomUUID()}`
  await writeFile(part, text)
  await rename(part, path)
}

/**
 * A second name for the index as it is now. git never writes an index in place (it renames a new one over it), so both
 * names keep what they had; and the file's time stays, by which git tells which entries are too young to be trusted. A
 * copy, where links are not possible, is dated back for the same reason. Answers false when there is no index yet.
 */
export async function linkIndex(gitDir: string, storeDir: string, name: string): Promise<boolean> {
  // A split index names a shared one beside it.
  const shared = (await readdir(gitDir)).filter((entry) => entry.startsWith('sharedindex.'))
  await Promise.all(shared.map((entry) => linkFile(join(gitDir, entry), join(storeDir, entry))))
  return linkFile(join(gitDir, 'index'), join(storeDir, name))
}

async function linkFile(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to)
    if (lstatSync(to).isFile()) return true
    // A second name of a link: git would write to wherever it leads.
    await unlink(to)
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (code === 'ENOENT') return false
    if (code === 'EEXIST') return true
  }
  const found = await stat(from).catch(() => null)
  if (found === null) return false
  // Something else in its place could hold a copy up for ever.
  if (!found.isFile()) throw new ChangeSetFailure('repo_unavailable', 'The index of the repository is no file.')
  await copyFile(from, to)
  await utimes(to, found.atime, Math.floor(found.mtimeMs / 1000) - 1)
  return true
}

export async function indexMarkOf(gitDir: string): Promise<string | null> {
  try {
    const found = await stat(join(gitDir, 'index'), { bigint: true })
    return `${found.ino}:${found.size}:${found.mtimeNs}`
  } catch {
    return null
  }
}

export async function writeBaseRecord(storeDir: string, record: BaseRecord): Promise<void> {
  await replaceFile(join(storeDir, 'base.json'), JSON.stringify(record))
}

export async function readBaseRecord(storeDir: string): Promise<BaseRecord> {
  const text = await readFile(join(storeDir, 'base.json'), 'utf8').catch(() => null)
  if (text === null)
    throw new ChangeSetFailure('repo_unavailable', 'The repository, or what was kept of its base, is gone.')
  try {
    return baseRecord.parse(JSON.parse(text))
  } catch {
    throw new ChangeSetFailure('diff_unavailable', 'What was kept of the base cannot be read.')
  }
}

/** Removes the store. The path comes from a journal: only a folder of this shape is ever removed. */
export async function removeStore(storeDir: string): Promise<void> {
  const runDir = dirname(storeDir)
  const isOurs = basename(storeDir) === storeName && basename(dirname(runDir)) === 'runs'
  if (isOurs && runIdPattern.test(basename(runDir))) await rm(storeDir, { recursive: true, force: true })
}

/** Returns where an earlier version kept it: in the repository. */
export function olderStore(storeDir: string): { commonDir: string } | null {
  const runsDir = dirname(storeDir)
  const isOlder = basename(runsDir) === 'runs' && basename(dirname(runsDir)) === 'svc'
  return isOlder && runIdPattern.test(basename(storeDir)) ? { commonDir: dirname(dirname(runsDir)) } : null
}

/** Removes what an earlier version kept, and the folders above it when they hold no other run's. */
export async function removeOlderStore(storeDir: string): Promise<void> {
  const runsDir = dirname(storeDir)
  await rm(storeDir, { recursive: true, force: true })
  await rmdir(runsDir).catch(() => undefined)
  await rmdir(dirname(runsDir)).catch(() => undefined)
}

/** The time in nanoseconds by the clock of a file system, and the number of its device. */
interface Moment {
  ns: bigint
  dev: bigint
}

/**
 * The time now by the clock of the file system that holds the folder, which need not be ours. Told by a file that is made there
 * and removed at once. Null: none can be made.
 */
export function momentIn(folder: string): Moment | null {
  const probe = join(folder, `svc-${crypto.randomUUID()}`)
  try {
    const file = openSync(probe, 'wx', 0o600)
    try {
      const { ctimeNs: ns, dev } = fstatSync(file, { bigint: true })
      return { ns, dev }
    } finally {
      closeSync(file)
      unlinkSync(probe)
    }
  } catch {
    return null
  }
}

/** Tells a repository from another one that came into its place. Null: it is gone. */
export function markOf(commonDir: string): string | null {
  const found = statSync(commonDir, { bigint: true, throwIfNoEntry: false })
  return found === undefined ? null : `${found.dev}:${found.ino}:${found.birthtimeNs}`
}
