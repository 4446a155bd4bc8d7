import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import BetterSqlite3 from 'better-sqlite3'
import { migrate } from '../../control-plane/db/migrate.ts'
import { openDatabase } from '../../control-plane/db/open.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { findPostgres, startPostgres } from '../../scripts/postgres.ts'
import { currentRelease } from '../../scripts/release.ts'
import { schemaOf, tablesOf } from './spare-databases.ts'

/**
 * Makes what all tests of a run share: an image of the migrated SQLite schema, and a throw-away PostgreSQL whose template
 * database is migrated. Made once, although each project of the test run asks for it.
 */
export interface SharedDatabases {
  /** Of this run of the tests; removed at its end. */
  folder: string
  /** File with the image; null when the migrations failed. */
  sqliteImage: string | null
  /** The same in small pages, for a database in memory. */
  memoryImage: string | null
  /** Of the cluster's database `postgres`; null where PostgreSQL is not installed. */
  postgresUrl: string | null
  /** What the migrations make there, of which every database of a test is a copy; null where PostgreSQL is not installed. */
  template: { tables: string[]; schema: string } | null
  /** Why one of them is missing. */
  trouble: string | null
}

declare module 'vitest' {
  export interface ProvidedContext {
    databases: SharedDatabases
    /** Says how many replicas of the control plane a test's server is. */
    replicas: number
    /** Folder with the bundled programs. */
    programs: string
  }
}

interface Shared {
  databases: SharedDatabases
  users: number
  stop(): Promise<void>
}

// Each project loads this file anew, so what they share hangs on the one process that runs them.
const slot = Symbol.for('svc.test.databases')
type Holder = { [slot]?: Promise<Shared> | undefined }
const holder = globalThis as unknown as Holder

export const templateName = 'svc_template'

export async function setup(project: TestProject): Promise<void> {
  const shared = await (holder[slot] ??= prepare())
  shared.users++
  project.provide('databases', shared.databases)
  project.provide('replicas', project.name === 'replicas' ? 2 : 1)
  if (project.name === 'process' || project.name === 'sandbox') project.provide('programs', await currentRelease())
}

export async function teardown(): Promise<void> {
  const shared = await holder[slot]
  if (shared === undefined || --shared.users > 0) return
  holder[slot] = undefined
  await shared.stop()
}

async function prepare(): Promise<Shared> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-tests-'))
  const databases: SharedDatabases = {
    folder,
    sqliteImage: null,
    memoryImage: null,
    postgresUrl: null,
    template: null,
    trouble: null,
  }
  const [postgres] = await Promise.all([preparePostgres(databases), prepareSqlite(folder, databases)])
  return {
    databases,
    users: 0,
    async stop() {
      await postgres?.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function prepareSqlite(folder: string, databases: SharedDatabases): Promise<void> {
  const database = openDatabase({ url: ':memory:' })
  try {
    await migrate(database.root, realWorld.now())
    const raw = (await database.root.client.acquireConnection()) as BetterSqlite3.Database
    databases.sqliteImage = join(folder, 'migrated.db')
    writeFileSync(databases.sqliteImage, imageOf(raw))
    databases.memoryImage = join(folder, 'migrated-memory.db')
    writeFileSync(databases.memoryImage, inSmallPages(databases.sqliteImage))
    await database.root.client.releaseConnection(raw)
  } catch (error) {
    databases.trouble = String(error)
  } finally {
    await database.close()
  }
}

/** Each of its hundreds of tables and indexes takes a page, and most tests open a copy of all of them. */
function inSmallPages(image: string): Buffer {
  const copied = `${image}-copy`
  copyFileSync(image, copied)
  // The pages of a database in memory stay as they are.
  const raw = new BetterSqlite3(copied)
  try {
    raw.pragma('page_size = 4096')
    raw.exec('vacuum')
    if (raw.pragma('page_size', { simple: true }) !== 4096)
      throw new Error('the pages of the image are as large as before')
    return imageOf(raw)
  } finally {
    raw.close()
  }
}

function imageOf(raw: BetterSqlite3.Database): Buffer {
  const image = raw.serialize()
  // A database in memory keeps no log, yet the image may say so: opened again it would look for one.
  image[18] = 1
  image[19] = 1
  return image
}

async function preparePostgres(databases: SharedDatabases) {
  const programs = findPostgres()
  if (programs === null) {
    process.stderr.write(
      '\nPostgreSQL is not installed: what needs it is skipped and counted as skipped. Install it to run those tests.\n\n',
    )
    return null
  }
  const postgres = await startPostgres(programs)
  try {
    const admin = openDatabase({ url: postgres.url })
    await admin.root.raw(`create database ${templateName}`)
    await admin.close()
    const template = openDatabase({ url: postgres.urlOf(templateName) })
    await migrate(template.root, realWorld.now())
    databases.template = { tables: await tablesOf(template.root), schema: await schemaOf(template.root) }
    await template.close()
    databases.postgresUrl = postgres.url
  } catch (error) {
    await postgres.stop()
    throw error
  }
  return postgres
}
