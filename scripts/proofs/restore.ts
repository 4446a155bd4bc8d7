import { execFile } from 'node:child_process'
import { existsSync, realpathSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { Client } from 'pg'
import { compileCache } from '../../test/kit/compile-cache.ts'
import { programFile } from '../../test/kit/program-file.ts'
import { delay } from '../../test/kit/programs.ts'
import type { TestSystem } from '../../test/kit/system.ts'
import { findPostgres } from '../postgres.ts'
import type { Absences } from './absences.ts'

// Servers that are what they were at a backup: the steps of docs/backup.md.

const run = promisify(execFile)

/** How the state of a system is kept and put back, as an operator would. */
interface BackupWay {
  extension: string
  backup(file: string): Promise<void>
  /** While no server runs. */
  restore(file: string): Promise<void>
}

/** A backup that is made while runs are under way; `waitMs` later all servers die and are what they were then. */
export async function restoreServers(
  system: TestSystem,
  { absences, waitMs, databaseUrl }: { absences: Absences; waitMs: number; databaseUrl: string | null },
): Promise<void> {
  const way = databaseUrl === null ? ofSqlite(system) : ofPostgres(databaseUrl)
  const file = join(system.root, `backup-${Date.now()}.${way.extension}`)
  // All that is said from here on is unknown to the servers that come.
  const known = absences.begin('state')
  await way.backup(file)
  await delay(waitMs)
  const back = absences.begin('server')
  for (const server of system.servers) if (server.isRunning) await server.kill9()
  await way.restore(file)
  for (const server of system.servers) await server.start()
  back()
  known()
  rmSync(file)
}

function ofSqlite({ server, root }: TestSystem): BackupWay {
  const operate = (...args: readonly string[]) => {
    const line = ['--disable-warning=ExperimentalWarning', programFile('control-plane'), ...args]
    const env = { PATH: process.env['PATH'] ?? '', HOME: root, SVC_DATA_DIR: server.dataDir, ...compileCache }
    return run(process.execPath, line, { env, cwd: root })
  }
  return {
    extension: 'tar',
    backup: async (file) => void (await operate('backup', file)),
    restore: async (file) => void (await operate('restore', file, '--replace')),
  }
}

/** Where a program of PostgreSQL's clients is: beside the server's, which may have links in another folder; else wherever the PATH says. */
function clientProgram(name: string): string {
  const programs = findPostgres()
  if (programs === null) throw new Error('PostgreSQL is not installed.')
  const beside = join(dirname(realpathSync(join(programs, 'postgres'))), name)
  return existsSync(beside) ? beside : name
}

/** The folder of files and the key are those that the replicas have: as with a bucket, they are not lost with the database. */
function ofPostgres(url: string): BackupWay {
  return {
    extension: 'dump',
    backup: async (file) => void (await run(clientProgram('pg_dump'), ['--format=custom', `--file=${file}`, url])),
    restore: async (file) => {
      await makeEmpty(url)
      const options = ['--no-owner', '--exit-on-error', '--single-transaction', `--dbname=${url}`]
      await run(clientProgram('pg_restore'), [...options, file])
    },
  }
}

/** Makes the database of that address anew, without a table. */
export async function makeEmpty(url: string): Promise<void> {
  const { pathname, search } = new URL(url)
  const admin = new Client({ connectionString: `postgres:///postgres${search}` })
  await admin.connect()
  try {
    const name = admin.escapeIdentifier(pathname.slice(1))
    await admin.query(`drop database if exists ${name} with (force)`)
    await admin.query(`create database ${name} template template0`)
  } finally {
    await admin.end()
  }
}
