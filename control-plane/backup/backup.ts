import { existsSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { z } from 'zod'
import { dataFiles } from '../../shared/lib/places.ts'
import { version } from '../../shared/lib/version.ts'
import type { World } from '../../shared/lib/world.ts'
import { blobFolders, syncFolder } from '../blobs/disk.ts'
import { dialectOf } from '../db/dialect.ts'
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
  key: BackupAbout['key']
}

/**
 * Makes a backup of a server on SQLite, which may serve meanwhile. The database is copied at one moment, in one read that no
 * write waits for; then the bytes of the files that this copy knows are read. They never change, so each is there as the copy knows
 * it, unless it was deleted for good since.
 *
 * The archive is written beside its place and renamed when it is on the disk, so that under its name is a whole one or none.
 */
export async function makeBackup(
  config: BackupConfig,
  { file, hasKey, world, signal }: { file: string; hasKey: boolean; world: Pick<World, 'now'>; signal: AbortSignal },
): Promise<BackupMade> {
  if (dialectOf(config.databaseUrl) === 'postgres') throw new OperatorError(howToDump(config))
  if (!existsSync(config.databaseUrl))
    throw new OperatorError(`There is no database at ${config.databaseUrl}. Name its folder with --data-dir.`)
  const path = resolve(file)
  if (existsSync(path)) throw new OperatorError(`${path} is there already. Choose another name for the backup.`)
  if (!existsSync(dirname(path))) throw new OperatorError(`There is no folder ${dirname(path)} to put the backup in.`)
  const draft = `${path}.part-${process.pid}`
  const copyPath = `${draft}.db`
  try {
    const copy = await copyDatabase(config.databaseUrl, copyPath)
    try {
      const made = await writeArchive(draft, copy, { config, hasKey, at: world.now(), signal })
      renameSync(draft, path)
      await syncFolder(dirname(path))
      return { file: path, sizeBytes: statSync(path).size, ...made }
    } finally {
      copy.close()
    }
  } finally {
    for (const left of [draft, `${draft}.sums`, copyPath, `${copyPath}-journal`]) rmSync(left, { force: true })
  }
}

/** More pages than a database can have: all of them are copied in one read. In several, each write in between would begin it anew. */
const allPages = 0x7fffffff

/** Copies the database as it is at this moment into one file, and looks whether the copy is sound. */
async function copyDatabase(from: string, to: string): Promise<BetterSqlite3.Database> {
  const source = new BetterSqlite3(from, { fileMustExist: true, timeout: 5_000 })
  try {
    await source.backup(to, { progress: () => allPages })
  } finally {
    source.close()
  }
  const copy = new BetterSqlite3(to)
  // One file by itself, which its readers need not write beside.
  copy.pragma('journal_mode = DELETE')
  const verdict = String(copy.pragma('quick_check(1)', { simple: true }))
  if (verdict === 'ok') return copy
  copy.close()
  throw new OperatorError(`The database ${from} is damaged, so it makes no backup: ${verdict}`)
}

async function writeArchive(
  path: string,
  copy: BetterSqlite3.Database,
  { config, hasKey, at, signal }: { config: BackupConfig; hasKey: boolean; at: number; signal: AbortSignal },
): Promise<Omit<BackupMade, 'file' | 'sizeBytes'>> {
  const keyPath = join(config.dataDir, dataFiles.secretsKey)
  const about: BackupAbout = {
    format: backupFormat,
    version,
    createdAt: new Date(at).toISOString(),
    schema: schemaOf(copy),
    files: config.files.kind === 'disk' ? 'archive' : 'bucket',
    key: placeOfKey(config, { keyPath, hasKey }),
  }
  const archive = new ArchiveWriter(path, { mtime: new Date(at), signal })
  await archive.addText(entryNames.about, `${JSON.stringify(about, null, 2)}\n`)
  await archive.addFile(entryNames.database, copy.name)
  if (about.key === 'archive') await archive.addFile(entryNames.key, keyPath)
  const counts = config.files.kind === 'disk' ? await addBlobs(archive, copy, config.files.folder) : noFiles
  await archive.end()
  return { schema: about.schema, key: about.key, ...counts }
}

const noFiles = { files: null, filesGone: 0 }

const placeOfKey = (
  { secretsKey }: BackupConfig,
  { keyPath, hasKey }: { keyPath: string; hasKey: boolean },
): BackupAbout['key'] => {
  if (secretsKey !== null) return 'settings'
  if (!existsSync(keyPath)) return 'none'
  return hasKey ? 'archive' : 'left_out'
}

async function addBlobs(
  archive: ArchiveWriter,
  copy: BetterSqlite3.Database,
  folder: string,
): Promise<{ files: number; filesGone: number }> {
  const counts = { files: 0, filesGone: 0 }
  const mark = markOf(copy)
  if (mark === null) return counts
  for (const id of blobIdsOf(copy)) {
    const path = join(folder, mark, ...blobFolders(id))
    try {
      await archive.addFile(blobEntry(mark, id), path)
      counts.files++
    } catch (error) {
      const { code, path: missing } = error as NodeJS.ErrnoException
      if (code !== 'ENOENT' || missing !== path || existsSync(path)) throw error
      counts.filesGone++
    }
  }
  return counts
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
  const owned = 'select id from blobs where owned_at is not null and released_at is null order by id'
  for (const id of database.prepare(owned).pluck().iterate()) yield z.string().parse(id)
}
