import { existsSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { dataFiles } from '../shared/lib/places.ts'
import { keepRelease } from '../shared/lib/release-use.ts'
import { optimizeNothing } from '../shared/lib/v8.ts'
import { realWorld } from '../shared/lib/world.ts'
import type { ServerConfig } from './config.ts'
import { StartError } from './process/config-error.ts'
import { makeFolder } from './process/make-folder.ts'
import { DatabaseClock } from './db/database-clock.ts'
import { dialectOf, databaseTroubleOf } from './db/dialect.ts'
import { migrate } from './db/migrate.ts'
import { measureTables } from './db/statistics.ts'
import { openDatabase } from './db/open.ts'
import { claimSqliteFile } from './db/sole-server.ts'
import { foldFailures } from './process/fold-failures.ts'
import { createLog } from './process/log.ts'
import { measureClock } from './process/metrics.ts'
import { firstStart } from './operator/first-start.ts'
import { keepPrivate } from './private-files.ts'
import { ControlPlane } from './server.ts'
import { StorageError } from './blobs/place.ts'
import { inTransaction } from './db/transaction.ts'
import { urlIn } from './operator/login-link.ts'

/** A stop that takes longer, from the close of the port on, is cut short. */
const exitMs = 30_000

/** Runs the control plane until it is told to stop. */
export async function serve(config: ServerConfig): Promise<void> {
  const log = foldFailures(createLog({ level: config.logLevel, pretty: process.stderr.isTTY }), {
    world: realWorld,
    kindOf: whatIsAway,
  })
  for (const sentence of config.unknownNames) log.warn({}, sentence)
  makeFolder(config.dataDir)
  const open = keepPrivate(config)
  if (open.length > 0) log.warn({ files: open }, 'others could read these files; they cannot any more')
  const serverFile = join(config.dataDir, dataFiles.server)
  const release = dialectOf(config.databaseUrl) === 'sqlite' ? claimSole(config.databaseUrl, serverFile) : null
  const database = openDatabase({
    url: config.databaseUrl,
    poolSize: config.databasePool,
    readMs: config.readMs,
    writeMs: config.writeMs,
  })
  const clock = new DatabaseClock({ root: database.root, world: realWorld, log })
  await clock.start()
  const { world } = clock
  const applied = await migrate(database.root, world.now())
  if (applied > 0) log.info({ applied }, 'database migrated')
  await measureTables(database.root)
  const tokenFile = join(config.dataDir, dataFiles.loginToken)
  const first = await inTransaction(database.root, async (tx) => {
    const made = await firstStart(tx, world)
    // Before the commit: nobody could sign in where the people are stored and their first token is lost.
    if (made !== null) writeFileSync(tokenFile, `${made.token}\n`, { mode: 0o600, flush: true })
    return made
  })
  if (first) log.info({ tokenFile }, 'first start: a person, a company and a workspace were made')
  else if (!existsSync(tokenFile)) log.debug({}, 'no login token beside this data folder')
  const plane = await ControlPlane.create({ config, database, world, log, ownsProcess: true })
  measureClock(plane.watch.metrics, clock)
  await plane.start()
  keepRelease(world, (file, at) => utimesSync(file, at, at))
  // Written completely or not at all, since others read it meanwhile.
  writeFileSync(`${serverFile}.new`, `${JSON.stringify({ url: plane.localUrl, pid: process.pid })}\n`, { mode: 0o600 })
  renameSync(`${serverFile}.new`, serverFile)
  log.info({ url: plane.localUrl, database: database.dialect, dataDir: config.dataDir }, 'listening')

  let ending = false
  const hurry = new AbortController()
  const end = async (signal: string) => {
    // A second signal ends the wait.
    if (ending) return hurry.abort()
    ending = true
    log.info({ signal, drainMs: config.drainMs }, 'draining')
    await plane.leave(config.drainMs, hurry.signal)
    log.info({}, 'stopping')
    optimizeNothing()
    setTimeout(() => process.exit(1), exitMs).unref()
    rmSync(serverFile, { force: true })
    await plane.stop()
    clock.stop()
    await database.close()
    release?.()
    log.info({}, 'stopped')
    process.exit(0)
  }
  process.on('SIGTERM', () => void end('SIGTERM'))
  process.on('SIGINT', () => void end('SIGINT'))
  process.on('uncaughtException', (error) => {
    // The state of the interrupted work is unknown, so nothing is drained. A new start finds everything that was
    // committed.
    log.error({ err: error }, 'unexpected error, the server ends')
    rmSync(serverFile, { force: true })
    process.exit(70)
  })
}

/** Returns what is away that everything needs, and fails for alike meanwhile; null: the error is about something else. */
function whatIsAway(error: unknown): string | null {
  if (error instanceof StorageError) return 'storage'
  return databaseTroubleOf(error) === 'database_unavailable' ? 'database' : null
}

function claimSole(databaseUrl: string, serverFile: string): () => void {
  if (databaseUrl === ':memory:') return () => undefined
  makeFolder(dirname(databaseUrl))
  const release = claimSqliteFile(databaseUrl)
  if (release) return release
  const where = urlIn(serverFile)
  throw new StartError(
    `A control plane serves ${databaseUrl} already${where === null ? '' : ` at ${where}`}. Stop it first, or choose another folder with --data-dir.`,
  )
}
