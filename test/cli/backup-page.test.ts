import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openDatabase } from '../../control-plane/db/open.ts'
import { hasPostgres, openPostgres } from '../kit/database.ts'
import { programFile } from '../kit/program-file.ts'
import { notTyped } from './pages-not-typed.ts'
import { makeHome, type Home } from './run-svc.ts'
import { typePage, type TypedPage } from './typed-page.ts'

// The commands of backup.md, typed on both databases as they stand there.

let home: Home
let folder: string
let dataDir: string
beforeEach(() => {
  home = makeHome()
  folder = mkdtempSync(join(tmpdir(), 'svc-backup-page-'))
  dataDir = join(folder, 'data')
  mkdirSync(dataDir)
})
afterEach(() => {
  home.remove()
  rmSync(folder, { recursive: true, force: true })
})

const types = (env: Record<string, string>, plan: TypedPage) =>
  typePage('backup.md', { home, folder, env: Object.assign(env, { SVC_DATA_DIR: dataDir }) }, plan)
const skips = Object.keys(notTyped['backup.md']!)
const addUser = ['user', 'add', '--name', 'Ann', '--email', 'ann@example.com', '--workspace', 'team', '--no-token']

function addAnn(env: Record<string, string>): void {
  const line = ['--disable-warning=ExperimentalWarning', programFile('control-plane'), ...addUser]
  execFileSync(process.execPath, line, { env: { ...home.env, SVC_DATA_DIR: dataDir, ...env } })
}

test('of SQLite', async () => {
  const restored = join(folder, 'restored')
  const count = await types(
    {},
    {
      skips: [...skips, 'pg_', 'cp', 'tar', 'install', 'mkdir'],
      fill: { './svc-restored': restored },
      before: { 'svc-server backup': () => addAnn({}) },
      after: {
        'svc-server restore': ({ stdout }) => expect(JSON.parse(stdout)).toMatchObject({ files: 0, replaced: [] }),
      },
    },
  )
  expect(count).toBe(2)
  const database = new BetterSqlite3(join(restored, 'svc.db'), { readonly: true })
  expect(database.prepare('select email from users').pluck().all()).toEqual(['ann@example.com'])
  database.close()
})

describe.skipIf(!hasPostgres())('of PostgreSQL', () => {
  test('with the key and the files', async () => {
    const from = await openPostgres()
    const name = `restored_${Date.now()}`
    await from.root.raw(`create database ${name}`)
    const to = new URL(from.url)
    to.pathname = `/${name}`
    const env = { SVC_DATABASE_URL: from.url }
    try {
      mkdirSync(join(dataDir, 'files', 'files_mark', 'aa'), { recursive: true })
      writeFileSync(join(dataDir, 'files', 'files_mark', 'aa', 'blob_aa'), 'bytes')
      writeFileSync(join(dataDir, 'secrets.key'), 'a key')
      const count = await types(env, {
        skips: [...skips, 'svc-server'],
        before: {
          pg_dump: () => addAnn(env),
          pg_restore: () => {
            Object.assign(env, { SVC_DATABASE_URL: to.href, SVC_DATA_DIR: join(folder, 'elsewhere') })
          },
        },
      })
      expect(count).toBe(7)
      const restored = openDatabase({ url: to.href, poolSize: 1 })
      expect(await restored.root('users').pluck('email')).toEqual(['ann@example.com'])
      await restored.close()
      expect(readFileSync(join(folder, 'elsewhere', 'files/files_mark/aa/blob_aa'), 'utf8')).toBe('bytes')
      expect(readFileSync(join(folder, 'elsewhere', 'secrets.key'), 'utf8')).toBe('a key')

      // The programs say the same lines.
      const said = await types(
        { SVC_DATABASE_URL: from.url },
        {
          skips: [...skips, 'pg_', 'cp', 'tar', 'install', 'mkdir'],
          status: { 'svc-server': 1 },
          after: {
            'svc-server backup': ({ stderr }) => {
              expect(stderr).toContain('pg_dump --format=custom --file=svc.dump "$SVC_DATABASE_URL"')
              expect(stderr).toContain(`tar -cf files.tar -C ${join(dataDir, 'files')} .`)
            },
            'svc-server restore': ({ stderr }) => expect(stderr).toContain('pg_restore --no-owner --exit-on-error'),
          },
        },
      )
      expect(said).toBe(2)
    } finally {
      await from.root.raw(`drop database ${name} with (force)`)
      await from.close()
    }
  })
})
