import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createHash, randomBytes } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { packTar, unpackTar } from 'modern-tar'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { makeBackup } from '../../../control-plane/backup/backup.ts'
import type { BackupConfig } from '../../../control-plane/backup/contents.ts'
import { restoreBackup } from '../../../control-plane/backup/restore.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import { migratedImage } from '../../kit/program-file.ts'

// What a restore refuses, and what it leaves behind then: nothing. Archives are made of a real one, changed.

let root: string
let good: Entry[]
let number = 0
beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'svc-restore-'))
  const config = configOf('good')
  fill(config, ['blob_aaaaaaaaaaaaaaaa', 'blob_bbbbbbbbbbbbbbbb'])
  good = await entriesOf(await backupOf(config))
})
afterAll(() => rmSync(root, { recursive: true, force: true }))

interface Entry {
  header: { name: string; type?: 'file' | 'symlink' | 'directory'; size: number; linkname?: string }
  data?: Uint8Array<ArrayBuffer>
}

function configOf(name: string): BackupConfig {
  const dataDir = join(root, name)
  mkdirSync(dataDir, { recursive: true })
  return {
    dataDir,
    databaseUrl: join(dataDir, 'svc.db'),
    files: { kind: 'disk', folder: join(dataDir, 'files') },
    otherFiles: null,
    secretsKey: null,
  }
}

const bucket = {
  kind: 's3',
  endpoint: 'https://s3.example',
  bucket: 'b',
  prefix: '',
  region: 'x',
  keyId: 'k',
  secret: 's',
} as const

const mark = 'files_0123456789abcdef'
const pathOf = ({ dataDir }: BackupConfig, id: string) => join(dataDir, 'files', mark, id.slice(-2), id)

const bytesOf = (id: string) => `the bytes of ${id}`

/** A state with these blobs; and with the row of an upload that never ended. */
function fill(config: BackupConfig, ids: readonly string[]): void {
  copyFileSync(migratedImage()!, config.databaseUrl)
  const database = new BetterSqlite3(config.databaseUrl)
  database.pragma('foreign_keys = OFF')
  database.prepare("insert into server_keys (name, value, created_at) values ('files_mark', ?, 1)").run(mark)
  const add = database.prepare('insert into blobs (id, workspace_id, created_at, owned_at) values (?, ?, 1, ?)')
  for (const id of ids) {
    add.run(id, 'a-workspace', 1)
    mkdirSync(join(pathOf(config, id), '..'), { recursive: true })
    writeFileSync(pathOf(config, id), bytesOf(id))
  }
  add.run('blob_uuuuuuuuuuuuuuuu', 'a-workspace', null)
  database.close()
  writeFileSync(join(config.dataDir, 'secrets.key'), randomBytes(32).toString('hex'))
}

async function backupOf(config: BackupConfig): Promise<string> {
  const file = join(root, `${++number}.tar`)
  await makeBackup(config, { file, hasKey: true, world: realWorld, signal: new AbortController().signal })
  return file
}

const entriesOf = async (file: string) => (await unpackTar(readFileSync(file))) as Entry[]

/** With sums that are right, as somebody makes an archive who has another aim. */
async function archiveOf(entries: readonly Entry[], { hasSums = true } = {}): Promise<string> {
  const file = join(root, `${++number}.tar`)
  const sums = entries.map(
    ({ header, data }) =>
      `${createHash('sha256')
        .update(data ?? '')
        .digest('hex')}  ${header.name}\n`,
  )
  writeFileSync(file, await packTar([...entries, ...(hasSums ? [fileOf('SHA256SUMS', sums.join(''))] : [])]))
  return file
}

function fileOf(name: string, text: string | Uint8Array): Entry {
  const data = new Uint8Array(Buffer.from(text))
  return { header: { name, type: 'file', size: data.length }, data }
}

const bodyOf = () => good.filter(({ header }) => header.name !== 'SHA256SUMS')
const named = (name: string) => good.find(({ header }) => header.name === name)!

function changedDatabase(change: (database: BetterSqlite3.Database) => void): Entry[] {
  const path = join(root, `${++number}.db`)
  writeFileSync(path, named('svc.db').data!)
  const database = new BetterSqlite3(path)
  database.pragma('foreign_keys = OFF')
  change(database)
  database.close()
  return bodyOf().map((entry) => (entry.header.name === 'svc.db' ? fileOf('svc.db', readFileSync(path)) : entry))
}

let target: BackupConfig
beforeEach(() => {
  target = configOf(`target-${++number}`)
})
const restore = (file: string, mayReplace = false) => restoreBackup(target, { file, mayReplace, world: realWorld })
const leftIn = ({ dataDir }: BackupConfig) =>
  readdirSync(dataDir, { recursive: true, encoding: 'utf8' }).filter((name) => !/^(svc\.db\.lock.*|files)$/.test(name))

async function refused(file: string, said: string | RegExp): Promise<void> {
  await expect(restore(file)).rejects.toThrow(said)
  expect(leftIn(target)).toEqual([])
}

test('what is restored is what was there, without uploads that never ended', async () => {
  const restored = await restore(await archiveOf(bodyOf()))
  expect(restored).toMatchObject({ files: 2, filesMissing: 0, replaced: [] })
  for (const id of ['blob_aaaaaaaaaaaaaaaa', 'blob_bbbbbbbbbbbbbbbb'])
    expect(readFileSync(pathOf(target, id), 'utf8')).toBe(bytesOf(id))
  expect(existsSync(join(target.dataDir, 'files', 'restoring'))).toBe(false)
})

test('a file that went while the backup was made is told from one whose bytes are lost, and counted is what an archive lacks', async () => {
  const config = configOf('gone')
  fill(config, ['blob_aaaaaaaaaaaaaaaa', 'blob_cccccccccccccccc', 'blob_dddddddddddddddd'])
  rmSync(pathOf(config, 'blob_dddddddddddddddd'))
  const file = join(root, 'gone.tar')
  // The time is asked for when the database is copied.
  const now = () => {
    const database = new BetterSqlite3(config.databaseUrl)
    database.exec("update blobs set released_at = 1 where id = 'blob_cccccccccccccccc'")
    database.close()
    rmSync(pathOf(config, 'blob_cccccccccccccccc'))
    return 1
  }
  const made = await makeBackup(config, {
    file,
    hasKey: true,
    world: { ...realWorld, now },
    signal: new AbortController().signal,
  })
  expect(made).toMatchObject({ files: 1, filesGone: 1, filesMissing: 1 })
  expect(await restore(file)).toMatchObject({ files: 1, filesMissing: 2 })
})

test('of two backups with one name at one moment one is made, also where both have the same process id, as in containers', async () => {
  const config = configOf('twice')
  fill(config, ['blob_aaaaaaaaaaaaaaaa'])
  const folder = join(root, 'twice-backups')
  mkdirSync(folder)
  const plan = { file: join(folder, 'b.tar'), hasKey: true, world: realWorld, signal: new AbortController().signal }
  // What a killed one left, by the names that it had before.
  writeFileSync(`${plan.file}.part-${process.pid}`, 'half')
  const ends = await Promise.allSettled([makeBackup(config, plan), makeBackup(config, plan)])
  expect(ends.map(({ status }) => status).toSorted((a, b) => a.localeCompare(b))).toEqual(['fulfilled', 'rejected'])
  expect(ends.find(({ status }) => status === 'rejected')).toMatchObject({
    reason: { message: `${plan.file} is there already. Choose another name for the backup.` },
  })
  expect(await restore(plan.file)).toMatchObject({ files: 1, filesMissing: 0 })
  expect(readdirSync(folder)).toEqual(['b.tar', `b.tar.part-${process.pid}`])
})

test('while files move, a backup has those of both folders; one of a folder and a bucket is refused', async () => {
  const config = configOf('moving')
  fill(config, ['blob_aaaaaaaaaaaaaaaa', 'blob_bbbbbbbbbbbbbbbb'])
  const before = join(config.dataDir, 'before')
  mkdirSync(join(before, mark, 'aa'), { recursive: true })
  renameSync(pathOf(config, 'blob_aaaaaaaaaaaaaaaa'), join(before, mark, 'aa', 'blob_aaaaaaaaaaaaaaaa'))
  const plan = { file: join(root, 'moving.tar'), hasKey: true, world: realWorld, signal: new AbortController().signal }
  const moving: BackupConfig = { ...config, otherFiles: { kind: 'disk', folder: before } }
  expect(await makeBackup(moving, plan)).toMatchObject({ files: 2, filesGone: 0, filesMissing: 0 })
  expect(await restore(plan.file)).toMatchObject({ files: 2, filesMissing: 0 })
  for (const mixed of [
    { ...config, otherFiles: bucket },
    { ...moving, files: bucket },
  ])
    await expect(makeBackup(mixed, { ...plan, file: join(root, 'mixed.tar') })).rejects.toThrow('svc-server files move')
  expect(existsSync(join(root, 'mixed.tar'))).toBe(false)
})

test('a folder of files that is not mounted makes no backup without them', async () => {
  const config = configOf('unmounted')
  fill(config, ['blob_aaaaaaaaaaaaaaaa'])
  rmSync(join(config.dataDir, 'files', mark), { recursive: true })
  const plan = {
    file: join(root, 'unmounted.tar'),
    hasKey: true,
    world: realWorld,
    signal: new AbortController().signal,
  }
  await expect(makeBackup(config, plan)).rejects.toThrow('Mount the disk')
  expect(existsSync(plan.file)).toBe(false)
})

test('a backup that is stopped, or finds a damaged database, leaves nothing behind', async () => {
  const config = configOf('stopped')
  fill(config, ['blob_aaaaaaaaaaaaaaaa'])
  const file = join(config.dataDir, 'b.tar')
  const before = leftIn(config)
  const stopped = { file, hasKey: true, world: realWorld, signal: AbortSignal.abort() }
  await expect(makeBackup(config, stopped)).rejects.toThrow('aborted')
  expect(leftIn(config)).toEqual(before)
  const plan = { ...stopped, signal: new AbortController().signal }
  // As a server leaves it: its copy has a log, too, when it is opened.
  const database = new BetterSqlite3(config.databaseUrl)
  database.pragma('journal_mode = WAL')
  database.close()
  const whole = readFileSync(config.databaseUrl)
  writeFileSync(config.databaseUrl, Buffer.concat([whole.subarray(0, 4096), randomBytes(whole.length - 4096)]))
  await expect(makeBackup(config, plan)).rejects.toThrow('is damaged, so it makes no backup')
  expect(leftIn(config)).toEqual(before)
  writeFileSync(config.databaseUrl, randomBytes(100_000), { flag: 'r+' })
  await expect(makeBackup(config, plan)).rejects.toThrow('not a database')
  expect(leftIn(config)).toEqual(before)
})

describe('refused are', () => {
  test('a byte that changed, by the name of its entry', async () => {
    for (const name of ['svc.db', `files/${mark}/aa/blob_aaaaaaaaaaaaaaaa`]) {
      const file = await archiveOf(bodyOf())
      const bytes = readFileSync(file)
      const at = bytes.indexOf(Buffer.from(named(name).data!.subarray(0, 21)))
      bytes[at + 20]! ^= 1
      writeFileSync(file, bytes)
      await refused(file, new RegExp(`damaged.*${name}|${name}.*not as it was written`))
      target = configOf(`target-${++number}`)
    }
  })

  test('a folder in the place of an archive', () => refused(root, 'There is no backup at'))

  test('an archive that is cut off, anywhere', async () => {
    const whole = readFileSync(await archiveOf(bodyOf()))
    for (const part of [0, 0.0001, 0.3, 0.9, 0.99].map((share) => Math.floor(whole.length * share))) {
      const file = join(root, `${++number}.tar`)
      writeFileSync(file, whole.subarray(0, part))
      await refused(file, /damaged, or no backup|no backup of svc-server/)
    }
    await refused(await archiveOf(bodyOf(), { hasSums: false }), 'its end is missing')
    // What was refused is in the way of nothing.
    await restore(await archiveOf(bodyOf()))
  })

  test.each<[string, () => Entry[], string | RegExp]>([
    ['a path that leads elsewhere', () => [...bodyOf(), fileOf('../outside', 'x')], 'where no backup has it'],
    ['a path from the root', () => [...bodyOf(), fileOf('/etc/outside', 'x')], 'where no backup has it'],
    [
      'a blob in another folder',
      () => [...bodyOf(), fileOf(`files/${mark}/zz/blob_aa`, 'x')],
      'where no backup has it',
    ],
    [
      'files of two databases',
      () => [...bodyOf(), fileOf('files/files_other/aa/blob_aa', 'x')],
      'where no backup has it',
    ],
    [
      'a link',
      () => [
        ...bodyOf(),
        { header: { name: `files/${mark}/aa/blob_1aa`, type: 'symlink', size: 0, linkname: '/etc' } },
      ],
      'where no backup has it',
    ],
    ['an entry that comes twice', () => [...bodyOf(), named('secrets.key')], 'where no backup has it'],
    ['another archive', () => [fileOf('notes.txt', 'x')], 'no backup of svc-server'],
    ['one without its database', () => bodyOf().filter(({ header }) => header.name !== 'svc.db'), 'its end is missing'],
    [
      'one without its key',
      () => bodyOf().filter(({ header }) => header.name !== 'secrets.key'),
      'it has no secrets.key',
    ],
    [
      'a key that is none',
      () => bodyOf().map((entry) => (entry.header.name === 'secrets.key' ? fileOf('secrets.key', 'short') : entry)),
      'The key of the secrets in the backup is none',
    ],
    [
      'a later form',
      () => [fileOf('backup.json', '{"format":2,"version":"9.1.0"}'), ...bodyOf().slice(1)],
      'made by svc-server 9.1.0, in a form that this one does not know',
    ],
    [
      'a later schema',
      () => changedDatabase((database) => database.exec("insert into schema_migrations values (9999, 'later', 1)")),
      /its schema is 9999, .* Restore it with the version that made it/,
    ],
    [
      'a database with other files',
      () =>
        changedDatabase((database) =>
          database.exec("update server_keys set value = 'files_x' where name = 'files_mark'"),
        ),
      'those of another database',
    ],
    [
      'a database of another program',
      () => {
        const other = new BetterSqlite3(':memory:')
        other.exec('create table notes (id)')
        return bodyOf().map((entry) => (entry.header.name === 'svc.db' ? fileOf('svc.db', other.serialize()) : entry))
      },
      'none of svc-server',
    ],
    [
      'a database that is none',
      () => bodyOf().map((entry) => (entry.header.name === 'svc.db' ? fileOf('svc.db', randomBytes(50_000)) : entry)),
      'cannot be read',
    ],
  ])('%s', async (_, entries, said) => {
    await refused(await archiveOf(entries()), said)
  })

  test('a state that somebody else has open, and one that is damaged, which stays as it is', async () => {
    const file = await archiveOf(bodyOf())
    await restore(file)
    const open = new BetterSqlite3(target.databaseUrl)
    open.pragma('journal_mode = WAL')
    open.prepare('select count(*) from blobs').get()
    await expect(restore(file, true)).rejects.toThrow('Somebody else uses')
    open.close()
    writeFileSync(target.databaseUrl, 'no database')
    await expect(restore(file, true)).rejects.toThrow('cannot be set aside')
    expect(readFileSync(target.databaseUrl, 'utf8')).toBe('no database')
  })

  test('a bucket where the archive has the files, and a folder where it has not', async () => {
    const file = await archiveOf(bodyOf())
    await expect(
      restoreBackup({ ...target, files: bucket }, { file, mayReplace: false, world: realWorld }),
    ).rejects.toThrow('SVC_FILES_URL names a bucket')
    const config = configOf('bucket')
    fill(config, [])
    const inBucket = join(root, 'bucket.tar')
    const plan = { file: inBucket, hasKey: true, world: realWorld, signal: new AbortController().signal }
    expect(await makeBackup({ ...config, files: bucket }, plan)).toMatchObject({ files: null })
    await expect(restore(inBucket)).rejects.toThrow('Name it with SVC_FILES_URL')
  })
})

test('a restore that died between its steps is made again', async () => {
  const file = await archiveOf(bodyOf())
  await restore(file)
  // As one that died before its last rename: the key is that of the archive, drafts lie about, and there is no database.
  rmSync(target.databaseUrl)
  for (const name of ['svc.db.restoring', 'svc.db.restoring-sums', 'secrets.key.restoring'])
    writeFileSync(join(target.dataDir, name), 'half')
  mkdirSync(join(target.dataDir, 'files', 'restoring', mark), { recursive: true })
  await expect(restore(file)).rejects.toThrow('--replace')
  expect(await restore(file, true)).toMatchObject({
    files: 2,
    replaced: [expect.stringContaining('secrets.key.replaced-')],
  })
  expect(leftIn(target).filter((name) => name.includes('restoring'))).toEqual([])
})

test('the log of a database that somebody removed is not taken for that of the one which comes', async () => {
  fill(target, [])
  const log = `${target.databaseUrl}-wal`
  const database = new BetterSqlite3(target.databaseUrl)
  database.pragma('journal_mode = WAL')
  database.prepare("insert into server_keys (name, value, created_at) values ('stale', 'x', 1)").run()
  const written = readFileSync(log)
  database.close()
  rmSync(target.databaseUrl)
  rmSync(join(target.dataDir, 'secrets.key'))
  writeFileSync(log, written)
  const { replaced } = await restore(await archiveOf(bodyOf()))
  expect(replaced).toEqual([expect.stringContaining('svc.db-wal.replaced-')])
  expect(readFileSync(replaced[0]!)).toEqual(written)
  const restored = new BetterSqlite3(target.databaseUrl)
  expect(restored.prepare("select name from server_keys where name in ('stale', 'files_mark')").pluck().all()).toEqual([
    'files_mark',
  ])
  restored.close()
})
