import { existsSync, mkdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
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

/**
 * What is kept of a run's base: a private git folder at `<git common dir>/svc/runs/<runId>`.
 *
 *     config, HEAD          written by us; the repository's own config is never in force here
 *     index                 the working tree at the base: every tracked and untracked file with its stat data, so
 *                           that the end needs to read only what changed since
 *     objects/              what the base needs and no commit holds (dirty, untracked and staged files); its alternate
 *                           is the repository's own object store. git gc does not look in here. With nothing of that
 *                           kind it is a link to that object store, and nothing is ever written through it
 *     info                  a link to the repository's own, for its exclude and attributes files
 *     base.json             where the repository is, and the files known by size and time alone
 *
 * Nothing in the person's git folder is written but this folder and the ref that keeps the base commit.
 */

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
  objectFormat: z.enum(['sha1', 'sha256']),
  settings: z.object({ values: z.partialRecord(z.enum(carriedKeys), z.string()), filters: z.array(z.string()) }),
  /** Identity of the repository's index when the base was taken; null without one. */
  indexMark: z.string().nullable(),
  watched: z.array(watchedFile),
})
export type BaseRecord = z.infer<typeof baseRecord>

const runIdPattern = /^[A-Za-z0-9_-]{1,128}$/

export function storeDirOf(commonDir: string, runId: string): string {
  if (!runIdPattern.test(runId))
    throw new ChangeSetFailure('diff_unavailable', 'The id of the run cannot name a folder.')
  return join(commonDir, 'svc', 'runs', runId)
}

export function refNameOf(runId: string): string {
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
  symlinkSync('../../../objects', at('objects'))
  symlinkSync('../../../info', at('info'))
  await linkIndex(record.gitDir, storeDir, 'index')
}

const configOf = (record: BaseRecord, fileBytes: number) =>
  renderConfig(record.settings.values, record.objectFormat, fileBytes)

/** From here on objects may be written. No git may be at work in the store. */
export async function ownObjects(storeDir: string): Promise<void> {
  const objects = join(storeDir, 'objects')
  await unlink(objects)
  await mkdir(join(objects, 'info'), { recursive: true })
  // Relative, so that a path no alternates file can hold does no harm.
  await writeFile(join(objects, 'info', 'alternates'), '../../../../objects\n')
}

/** git would say of a store without objects that it is none. */
export async function demandObjects(storeDir: string): Promise<void> {
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
    return true
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (code === 'ENOENT') return false
    if (code === 'EEXIST') return true
  }
  const found = await stat(from)
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

export async function writeRecord(storeDir: string, record: BaseRecord): Promise<void> {
  await replaceFile(join(storeDir, 'base.json'), JSON.stringify(record))
}

/** When the base was taken, in nanoseconds by the clock of the file system that holds the repository; null: not known. */
export function baseMomentOf(storeDir: string): bigint | null {
  return statSync(join(storeDir, 'base.json'), { bigint: true, throwIfNoEntry: false })?.ctimeNs ?? null
}

export async function readRecord(storeDir: string): Promise<BaseRecord> {
  const text = await readFile(join(storeDir, 'base.json'), 'utf8').catch(() => null)
  if (text === null)
    throw new ChangeSetFailure('repo_unavailable', 'The repository, or what was kept of its base, is gone.')
  try {
    return baseRecord.parse(JSON.parse(text))
  } catch {
    throw new ChangeSetFailure('diff_unavailable', 'What was kept of the base cannot be read.')
  }
}

/** Removes the store, and the folders above it when they hold no other run's. */
export async function removeStore(storeDir: string): Promise<void> {
  const runsDir = dirname(storeDir)
  // The path comes from a journal; only a folder of this shape is ever removed.
  if (basename(runsDir) !== 'runs' || basename(dirname(runsDir)) !== 'svc' || !runIdPattern.test(basename(storeDir)))
    return
  await rm(storeDir, { recursive: true, force: true })
  await rmdir(runsDir).catch(() => undefined)
  await rmdir(dirname(runsDir)).catch(() => undefined)
}
