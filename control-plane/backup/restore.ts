import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { dataFiles } from '../../shared/lib/places.ts'
import { version } from '../../shared/lib/version.ts'
import type { World } from '../../shared/lib/world.ts'
import { blobFolders, syncFolder } from '../blobs/disk.ts'
import { dialectOf } from '../db/dialect.ts'
import { migrations } from '../db/migrations/index.ts'
import { claimSqliteFile } from '../db/sole-server.ts'
import { OperatorError } from '../operator/people.ts'
import { makeFolder } from '../process/make-folder.ts'
import { parseKey } from '../vault/vault.ts'
import { blobIdsOf, markOf, schemaOf } from './backup.ts'
import type { BackupAbout, BackupConfig } from './contents.ts'
import { howToLoad } from './postgres.ts'
import { unpack, type UnpackedPlaces } from './unpack.ts'

export interface Restored {
  database: string
  /** When the backup was made, and by which version. */
  createdAt: string
  version: string
  schema: number
  /** Files of the archive; null: they are in a bucket. */
  files: number | null
  /** Files that the database knows and the archive has no bytes of. */
  filesMissing: number
  /** `left_out`: put the key of the secrets in its place before the server is started. */
  key: BackupAbout['key']
  /** What was there before, by its name now. */
  replaced: string[]
}

/**
 * Restores a backup of SQLite while no server has the database.
 *
 *   unpacked beside its places --> verified --> files --> key --> database, in its place by one rename
 *
 * Until it is verified nothing of what is there is touched. A restore that dies later leaves the database that was there, if any, and is
 * made again: every step may be repeated. Files are added to those that are there, under the names by which the database knows them.
 */
export async function restoreBackup(
  config: BackupConfig,
  { file, mayReplace, world }: { file: string; mayReplace: boolean; world: Pick<World, 'now'> },
): Promise<Restored> {
  const { databaseUrl } = config
  if (dialectOf(databaseUrl) === 'postgres') throw new OperatorError(howToLoad(config))
  const archive = resolve(file)
  const found = statSync(archive, { throwIfNoEntry: false })
  if (found === undefined || found.isDirectory()) throw new OperatorError(`There is no backup at ${archive}.`)
  const places = placesOf(config)
  for (const folder of [config.dataDir, dirname(databaseUrl)]) makeFolder(folder)
  const release = claimSqliteFile(databaseUrl)
  if (release === null)
    throw new OperatorError(
      `A control plane serves ${databaseUrl}. Stop it first, or choose another folder with --data-dir.`,
    )
  try {
    refuseState(places, mayReplace)
    clearDrafts(places)
    return await carryOut(config, { archive, places, at: world.now() })
  } finally {
    clearDrafts(places)
    release()
  }
}

interface Places {
  database: string
  key: string
  /** The folder of all files; null: they are in a bucket. */
  files: string | null
  drafts: UnpackedPlaces
  /** The draft of the folder of files, on the same disk as that. */
  filesDraft: string
}

function placesOf({ databaseUrl, dataDir, files }: BackupConfig): Places {
  const key = join(dataDir, dataFiles.secretsKey)
  const folder = files.kind === 'disk' ? files.folder : null
  const filesDraft = join(folder ?? dataDir, 'restoring')
  const draftOf = (path: string) => `${path}.restoring`
  const drafts = {
    database: draftOf(databaseUrl),
    key: draftOf(key),
    sums: `${draftOf(databaseUrl)}-sums`,
    blob: ({ mark, id }: { mark: string; id: string }) => join(filesDraft, mark, ...blobFolders(id)),
  }
  return { database: databaseUrl, key, files: folder, drafts, filesDraft }
}

function refuseState({ database, key }: Places, mayReplace: boolean): void {
  const there = [database, key].filter((path) => existsSync(path))
  if (there.length === 0 || mayReplace) return
  throw new OperatorError(
    `There is a server's state already: ${there.join(', ')}. Choose another folder with --data-dir, or set it aside with --replace.`,
  )
}

function clearDrafts({ drafts, filesDraft }: Places): void {
  const files = [drafts.database, drafts.key, drafts.sums, `${drafts.database}-journal`]
  for (const path of files) rmSync(path, { force: true })
  rmSync(filesDraft, { recursive: true, force: true })
}

async function carryOut(
  config: BackupConfig,
  { archive, places, at }: { archive: string; places: Places; at: number },
): Promise<Restored> {
  const check = ({ files }: BackupAbout) => {
    if ((files === 'archive') === (config.files.kind === 'disk')) return
    throw new OperatorError(
      files === 'bucket'
        ? 'The files of this backup are in a bucket. Name it with SVC_FILES_URL, as on the server that was backed up.'
        : 'The backup has the bytes of its files, and SVC_FILES_URL names a bucket. Leave it out, or name a folder.',
    )
  }
  const { about, hasKey, files, mark } = await unpack(archive, places.drafts, check)
  const { filesMissing, ownMark, schema } = verified(places, { mark, hasFiles: about.files === 'archive' })
  if (hasKey && parseKey(readFileSync(places.drafts.key, 'utf8')) === null)
    throw new OperatorError('The key of the secrets in the backup is none. Nothing was restored.')
  const stamp = new Date(at).toISOString().replaceAll(/[:.]/g, '-')
  const replaced = setAside(places, { hasKey, stamp })
  if (places.files !== null && ownMark !== null)
    await putFiles(places.files, { draft: join(places.filesDraft, ownMark), mark: ownMark })
  if (hasKey) renameSync(places.drafts.key, places.key)
  await syncFolder(dirname(places.key))
  renameSync(places.drafts.database, places.database)
  await syncFolder(dirname(places.database))
  const { createdAt, version: by, key } = about
  const counted = about.files === 'archive' ? files : null
  return { database: places.database, createdAt, version: by, schema, files: counted, filesMissing, key, replaced }
}

/** Looks into the database that came: whether it is sound, of a schema that this program knows, and what it knows of files. */
function verified(places: Places, { mark, hasFiles }: { mark: string | null; hasFiles: boolean }) {
  const database = openDraft(places.drafts.database)
  try {
    const verdict = String(database.pragma('integrity_check(1)', { simple: true }))
    if (verdict !== 'ok')
      throw new OperatorError(`The database in the backup is damaged: ${verdict}. Nothing was restored.`)
    if (!isOurs(database))
      throw new OperatorError('The database in the backup is none of svc-server. Nothing was restored.')
    const schema = schemaOf(database)
    const known = migrations.at(-1)?.version ?? 0
    if (schema > known)
      throw new OperatorError(
        `The backup is of a newer svc-server: its schema is ${schema}, and that of svc-server ${version} is ${known}. Restore it with the version that made it.`,
      )
    const ownMark = markOf(database)
    if (mark !== null && mark !== ownMark)
      throw new OperatorError('The files in the backup are those of another database.')
    return { schema, ownMark, filesMissing: hasFiles ? missingIn(database, places, ownMark) : 0 }
  } finally {
    database.close()
  }
}

/** Other programs keep SQLite databases, too. */
const isOurs = (database: BetterSqlite3.Database): boolean =>
  database
    .prepare("select count(*) from sqlite_schema where name in ('schema_migrations', 'server_keys', 'blobs')")
    .pluck()
    .get() === 3

function openDraft(path: string): BetterSqlite3.Database {
  const database = new BetterSqlite3(path, { readonly: true })
  try {
    database.pragma('schema_version')
    return database
  } catch (error) {
    database.close()
    throw new OperatorError(
      `The database in the backup cannot be read: ${(error as Error).message}. Nothing was restored.`,
    )
  }
}

function missingIn(database: BetterSqlite3.Database, { drafts }: Places, mark: string | null): number {
  if (mark === null) return 0
  let missing = 0
  for (const id of blobIdsOf(database)) if (!existsSync(drafts.blob({ mark, id }))) missing++
  return missing
}

/** What is there keeps its bytes under another name, until somebody removes it. */
function setAside({ database, key }: Places, { hasKey, stamp }: { hasKey: boolean; stamp: string }): string[] {
  const replaced: string[] = []
  const aside = (path: string) => {
    if (!existsSync(path)) return
    const name = `${path}.replaced-${stamp}`
    secondName(path, name)
    replaced.push(name)
  }
  foldLog(database)
  // A database that somebody removed may have left its log, which SQLite would replay into whichever database has the name.
  for (const log of ['-wal', '-journal'].map((end) => `${database}${end}`)) {
    aside(log)
    rmSync(log, { force: true })
  }
  rmSync(`${database}-shm`, { force: true })
  aside(database)
  if (hasKey) aside(key)
  return replaced
}

/** The file keeps its place until another one is renamed into it. Some disks know no second names. */
function secondName(path: string, name: string): void {
  try {
    linkSync(path, name)
  } catch (error) {
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    copyFileSync(path, name)
  }
}

/** Moves what is only in the log into the database: a log that stayed would be taken for that of the one which comes. */
function foldLog(path: string): void {
  if (!existsSync(path)) return
  const database = new BetterSqlite3(path, { timeout: 2_000 })
  try {
    database.pragma('journal_mode = DELETE')
  } catch (error) {
    const { code } = error as { code?: string }
    if (code?.startsWith('SQLITE_BUSY') === true || code === 'SQLITE_LOCKED')
      throw new OperatorError(`Somebody else uses ${path}. End that first. Nothing was restored.`)
    throw new OperatorError(
      `The database ${path} cannot be set aside: ${(error as Error).message}. Move it away with its -wal and -shm, then type the command again.`,
    )
  } finally {
    database.close()
  }
}

/** Each file comes into its place by a rename; one that is there is the same, since the bytes of an id never change. */
async function putFiles(folder: string, { draft, mark }: { draft: string; mark: string }): Promise<void> {
  const marked = join(folder, mark)
  makeFolder(marked)
  await syncFolder(folder)
  if (!existsSync(draft)) return
  for (const part of readdirSync(draft)) {
    const to = join(marked, part)
    mkdirSync(to, { recursive: true, mode: 0o700 })
    for (const id of readdirSync(join(draft, part))) renameSync(join(draft, part, id), join(to, id))
    await syncFolder(to)
  }
  await syncFolder(marked)
}
