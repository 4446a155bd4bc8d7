import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { migrate } from '../../../control-plane/db/migrate.ts'
import { migrations } from '../../../control-plane/db/migrations/index.ts'
import { openDatabase } from '../../../control-plane/db/open.ts'
import { checkSchema, previousRelease } from '../../../control-plane/db/schema-check.ts'
import { compileCache } from '../../kit/compile-cache.ts'
import { hasPostgres, openPostgres } from '../../kit/database.ts'
import { programFile } from '../../kit/program-file.ts'
import { isCutOff, lastRelease } from '../../skew/old-programs.ts'

// `svc-server migrate --check`: what it says of databases of other schemas, and that it changes none of them.

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-migrate-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const newest = migrations.at(-1)!.version

/** A database with the first migrations, up to this one. */
async function databaseOf(version: number): Promise<string> {
  const path = join(folder, String(version), 'svc.db')
  const database = openDatabase({ url: path })
  await migrate(
    database.root,
    1,
    migrations.filter((each) => each.version <= version),
  )
  await database.close()
  return path
}

function check(path: string, ...args: string[]): { status: number | null; value: unknown } {
  const line = ['--disable-warning=ExperimentalWarning', programFile('control-plane'), 'migrate', ...args]
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: folder,
    SVC_DATA_DIR: dirname(path),
    ...compileCache,
  }
  const { status, stdout } = spawnSync(process.execPath, line, { encoding: 'utf8', env })
  return { status, value: stdout === '' ? null : JSON.parse(stdout) }
}

test('what is pending has a status of its own, and nothing is written by asking', async () => {
  const path = await databaseOf(20)
  const before = [readdirSync(dirname(path)), readFileSync(path)]
  const pending = migrations.filter(({ version }) => version > 20).map(({ version, name }) => ({ version, name }))
  expect(check(path, '--check')).toEqual({
    status: 3,
    value: { schema: 20, programSchema: newest, pending, previousRelease: { version: '0.1.0', mayGoOn: true } },
  })
  expect([readdirSync(dirname(path)), readFileSync(path)]).toEqual(before)

  expect(check(path)).toMatchObject({ status: 0, value: { schema: newest, pending: [] } })
  expect(check(path, '--check')).toMatchObject({ status: 0, value: { schema: newest, pending: [] } })
})

test('a database that is not there is not made, and one of before the previous release has no server that may go on', async () => {
  const none = join(folder, 'none', 'svc.db')
  expect(await checkSchema(none)).toMatchObject({
    schema: null,
    pending: expect.objectContaining({ length: migrations.length }),
  })
  expect(readdirSync(folder)).not.toContain('none')
  const old = await databaseOf(previousRelease.schema - 1)
  expect((await checkSchema(old)).previousRelease.mayGoOn).toBe(false)
  const previous = await databaseOf(previousRelease.schema)
  expect((await checkSchema(previous)).previousRelease.mayGoOn).toBe(true)
})

describe.skipIf(!hasPostgres())('on PostgreSQL', () => {
  test('what is pending is found', async () => {
    const database = await openPostgres()
    try {
      expect(await checkSchema(database.url)).toMatchObject({ schema: newest, pending: [] })
      await database.root('schema_migrations').where({ version: newest }).delete()
      expect((await checkSchema(database.url)).pending).toMatchObject([{ version: newest }])
    } finally {
      await database.close()
    }
  })
})

test.skipIf(isCutOff(lastRelease))('the schema of the previous release is that of its commit', () => {
  const git = (...args: string[]) =>
    execFileSync('git', args, { cwd: resolve(import.meta.dirname, '../../..'), encoding: 'utf8' })
  const files = git('ls-tree', '--name-only', `${lastRelease}:control-plane/db/migrations`)
  const numbers = files.split('\n').flatMap((name) => (/^\d{3}-/.test(name) ? [parseInt(name, 10)] : []))
  expect(Math.max(...numbers)).toBe(previousRelease.schema)
  expect(JSON.parse(git('show', `${lastRelease}:package.json`))).toMatchObject({ version: previousRelease.version })
})
