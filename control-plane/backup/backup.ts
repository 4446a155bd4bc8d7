import { existsSync, linkSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { z } from 'zod'
import { dataFiles } from '../../shared/lib/places.ts'
import { version } from '../../shared/lib/version.ts'
import type { World } from '../../shared/lib/world.ts'
import { blobFolders, syncFolder } from '../blobs/disk.ts'
import type { BlobLocation } from '../blobs/location.ts'
import { dialectOf } from '../db/dialect.ts'
import { refuseMissing } from '../operator/keeping-commands.ts'
import { OperatorError } from '../operator/people.ts'
import { ArchiveWriter } from './archive-writer.ts'
import { type BackupAbout, type BackupConfig, backupFormat, blobEntry, entryNames } from './contents.ts'
import { howToDump } from './postgres.ts'

export interface BackupMade {
  file: string
  sizeBytes: number
  schema: number
  /** Files whose bytes are in the archive; null: they stay in their bucket. */
  files: number | null
  /** Files that were deleted for good while the backup was made. */
  filesGone: number
  /** Files that the server still has and whose bytes are lost: the archive is without them. */
  filesMissing: number
  key: BackupAbout['key']
}

/**
 * Makes a backup of a server on SQLite, which may serve meanwhile. The database is copied at one moment, in one read that no
 * write waits for; then the bytes of the files that this copy knows are read. They never change, so each is there as the copy knows
 * it, unless it was deleted for good since.
 *
 * The archive is written beside its place and gets its name when it is on the disk, so that under its name is a whole one or none. Its
 * files on the way have names of their own: in containers all backups have the same process id, also one that was killed.
 */
export async function makeBackup(
  config: BackupConfig,
  {
    file,
    hasKey,
    world,
    signal,
  }: { file: string; hasKey: boolean; world: Pick<World, 'now' | 'uuid'>; signal: AbortSignal },
): Promise<BackupMade> {
  if (dialectOf(config.databaseUrl) === 'postgres') throw new OperatorError(howToDump(config))
  refuseMissing(config.databaseUrl)
  const path = resolve(file)
  if (existsSync(path)) throw taken(path)
  const folders = foldersOf(config)
  if (!isFolder(dirname(path))) throw new OperatorError(`There is no folder ${dirname(path)} to put the backup in.`)
  const draft = `${path}.part-${world.uuid()}`
  const copyPath = `${draft}.db`
  try {
    const copy = await copyDatabase(config.databaseUrl, copyPath)
    try {
      const made = await writeArchive(draft, copy, { config, folders, hasKey, at: world.now(), signal })
      publish(draft, path)
      await syncFolder(dirname(path))
      return { file: path, sizeBytes: statSync(path).size, ...made }
    } finally {
      copy.close()
    }
  } finally {
    const copies = ['', '-journal', '-wal', '-shm'].map((end) => `${copyPath}${end}`)
    for (const left of [draft, `${draft}.sums`, ...copies]) rmSync(left, { force: true })
  }
}

const taken = (path: string) => new OperatorError(`${path} is there already. Choose another name for the backup.`)

/** Gives the archive its name, which another backup may have taken since. A disk that knows no hard links cannot refuse that. */
function publish(draft: string, path: string): void {
  try {
    linkSync(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw taken(path)
    renameSync(draft, path)
  }
}

/** More pages than a database can have: all of them are copied in one read. In several, each write in between would begin it anew. */
const allPages = 0x7fffffff

/** Copies the database as it is at this moment into one file, and looks whether the copy is sound. */
async function copyDatabase(from: string, to: string): Promise<BetterSqlite3.Database> {
  const source = new BetterSqlite3(from, { fileMustExist: true, timeout: 5_000 })
  try {
    await source.backup(to, { progress: () => allPages })
  } catch (error) {
    throw copyTrouble(error, to)
  } finally {
    source.close()
  }
  const copy = new BetterSqlite3(to)
  const verdict = verdictOn(copy)
  if (verdict === 'ok') return copy
  copy.close()
  throw new OperatorError(
    `The database ${from} is damaged, so it makes no backup: ${verdict}. Restore the last backup that is sound.`,
  )
}

/** Makes it one file by itself, which its readers need not write beside. A database that is badly damaged fails already then. */
function verdictOn(copy: BetterSqlite3.Database): string {
  try {
    copy.pragma('journal_mode = DELETE')
    return String(copy.pragma('quick_check(1)', { simple: true }))
  } catch (error) {
    if ((error as { code?: string }).code?.startsWith('SQLITE_CORRUPT') === true) return (error as Error).message
    copy.close()
    throw error
  }
}

/** SQLite says of a copy that fails only that a database did. */
function copyTrouble(error: unknown, to: string): unknown {
  const { code } = error as { code?: string }
  if (code === 'SQLITE_FULL')
    return new OperatorError(
      `There is no room for the backup in ${dirname(to)}: it takes that of the database twice, and that of the files. Make room, or name another disk.`,
    )
  if (code?.startsWith('SQLITE_CANTOPEN') === true)
    return new OperatorError(`No file can be made in ${dirname(to)}. Choose another folder for the backup.`)
  return error
}

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false

/** The folders in which files are, first that in which new ones are stored; null: they are in a bucket. */
function foldersOf({ files, otherFiles }: BackupConfig): string[] | null {
  const places: BlobLocation[] = otherFiles === null ? [files] : [files, otherFiles]
  const folders = places.flatMap((place) => (place.kind === 'disk' ? [place.folder] : []))
  if (folders.length === 0) return null
  if (folders.length === places.length) return folders
  throw new OperatorError(
    'Files are on their way between a folder and a bucket, and a backup would have a part of them. Type svc-server files move ' +
      'until it moves nothing, remove SVC_FILES_OTHER_URL, then make the backup.',
  )
}

async function writeArchive(
  path: string,
  copy: BetterSqlite3.Database,
  { config, folders, hasKey, at, signal }: ArchivePlan,
): Promise<Omit<BackupMade, 'file' | 'sizeBytes'>> {
  const keyPath = join(config.dataDir, dataFiles.secretsKey)
  const about: BackupAbout = {
    format: backupFormat,
    version,
    createdAt: new Date(at).toISOString(),
    schema: schemaOf(copy),
    files: folders === null ? 'bucket' : 'archive',
    key: placeOfKey(config, { keyPath, hasKey }),
  }
  const sources = folders === null ? null : sourcesOf(copy, folders)
  const archive = new ArchiveWriter(path, { mtime: new Date(at), signal })
  await archive.addText(entryNames.about, `${JSON.stringify(about, null, 2)}\n`)
  await archive.addFile(entryNames.database, copy.name)
  if (about.key === 'archive') await archive.addFile(entryNames.key, keyPath)
  const counts =
    sources === null
      ? { ...noFiles, files: folders === null ? null : 0 }
      : await addBlobs(archive, copy, { sources, live: config.databaseUrl })
  await archive.end()
  return { schema: about.schema, key: about.key, ...counts }
}

interface ArchivePlan {
  config: BackupConfig
  folders: readonly string[] | null
  hasKey: boolean
  at: number
  signal: AbortSignal
}

const noFiles = { filesGone: 0, filesMissing: 0 }

const placeOfKey = (
  { secretsKey }: BackupConfig,
  { keyPath, hasKey }: { keyPath: string; hasKey: boolean },
): BackupAbout['key'] => {
  if (secretsKey !== null) return 'settings'
  if (!existsSync(keyPath)) return 'none'
  return hasKey ? 'archive' : 'left_out'
}

/** What an archive has of the files: their folders, where they lie below the mark of the database. */
interface BlobSources {
  mark: string
  folders: readonly string[]
}

/** Fails where no folder has the mark, as when its disk is not mounted; null: no server has stored files for this database. */
function sourcesOf(copy: BetterSqlite3.Database, folders: readonly string[]): BlobSources | null {
  const mark = markOf(copy)
  if (mark === null) return null
  if (folders.some((folder) => isFolder(join(folder, mark)))) return { mark, folders }
  throw new OperatorError(
    `The files of this database are not in ${folders.join(' or ')}: there is no ${mark}. Mount the disk, or name the folder with SVC_FILES_URL.`,
  )
}

async function addBlobs(
  archive: ArchiveWriter,
  copy: BetterSqlite3.Database,
  { sources, live }: { sources: BlobSources; live: string },
): Promise<{ files: number; filesGone: number; filesMissing: number }> {
  const without: string[] = []
  let files = 0
  for (const id of blobIdsOf(copy))
    if (await addBlob(archive, id, sources)) files++
    else without.push(id)
  const filesMissing = countOwned(live, without)
  return { files, filesGone: without.length - filesMissing, filesMissing }
}

/** Returns false when no folder has it. */
async function addBlob(archive: ArchiveWriter, id: string, { mark, folders }: BlobSources): Promise<boolean> {
  for (const folder of folders) {
    const path = join(folder, mark, ...blobFolders(id))
    try {
      await archive.addFile(blobEntry(mark, id), path)
      return true
    } catch (error) {
      const { code, path: missing } = error as NodeJS.ErrnoException
      if (code !== 'ENOENT' || missing !== path || existsSync(path)) throw error
    }
  }
  return false
}

/** Those that the server has still: it releases a row before it removes the bytes, so theirs were lost otherwise. */
function countOwned(path: string, ids: readonly string[]): number {
  if (ids.length === 0) return 0
  const database = new BetterSqlite3(path, { fileMustExist: true, timeout: 5_000 })
  try {
    const find = database.prepare(`select 1 from blobs where id = ? and ${isOwned}`)
    return ids.filter((id) => find.get(id) !== undefined).length
  } finally {
    database.close()
  }
}

export function schemaOf(database: BetterSqlite3.Database): number {
  const newest: unknown = database.prepare('select max(version) from schema_migrations').pluck().get()
  return z.number().int().parse(newest)
}

/** The folder of its files below theirs; null: it has had none yet. */
export function markOf(database: BetterSqlite3.Database): string | null {
  const mark: unknown = database.prepare("select value from server_keys where name = 'files_mark'").pluck().get()
  return z.string().optional().parse(mark) ?? null
}

/** The blobs whose bytes somebody owns. Those of uploads that are under way have none. */
export function* blobIdsOf(database: BetterSqlite3.Database): Generator<string> {
  const owned = database.prepare(`select id from blobs where ${isOwned} order by id`)
  for (const id of owned.pluck().iterate()) yield z.string().parse(id)
}

const isOwned = 'owned_at is not null and released_at is null'
