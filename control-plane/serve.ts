import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { dataFiles } from '../shared/lib/places.ts'
import { realWorld } from '../shared/lib/world.ts'
import { ConfigError, type ServerConfig } from './config.ts'
import { dialectOf } from './db/dialect.ts'
import { migrate } from './db/migrate.ts'
import { openDatabase } from './db/open.ts'
import { createLog } from './log.ts'
import { firstStart } from './operator/first-start.ts'
import { ControlPlane } from './server.ts'

/** A drain that is not done by then is cut short. */
const exitMs = 30_000

/** Runs the control plane until it is told to stop. */
export async function serve(config: ServerConfig): Promise<void> {
  const world = realWorld
  const log = createLog({ level: config.logLevel, pretty: process.stderr.isTTY })
  mkdirSync(config.dataDir, { recursive: true, mode: 0o700 })
  const serverFile = join(config.dataDir, dataFiles.server)
  if (dialectOf(config.databaseUrl) === 'sqlite') await refuseSecond(serverFile)
  const database = openDatabase({ url: config.databaseUrl, poolSize: config.databasePool })
  const applied = await migrate(database.root, world.now())
  if (applied > 0) log.info({ applied }, 'database migrated')
  const first = await database.root.transaction((tx) => firstStart(tx, world))
  const tokenFile = join(config.dataDir, dataFiles.loginToken)
  if (first) {
    writeFileSync(tokenFile, `${first.token}\n`, { mode: 0o600 })
    log.info({ tokenFile }, 'first start: a person, a company and a workspace were made')
  } else if (!existsSync(tokenFile)) log.debug({}, 'no login token beside this data folder')
  const plane = await ControlPlane.create({ config, database, world, log, processMetrics: true })
  await plane.start()
  // Whole or not at all: others read it while it is written.
  writeFileSync(`${serverFile}.new`, `${JSON.stringify({ url: plane.localUrl, pid: process.pid })}\n`, { mode: 0o600 })
  renameSync(`${serverFile}.new`, serverFile)
  log.info({ url: plane.localUrl, database: database.dialect, dataDir: config.dataDir }, 'listening')

  let ending = false
  const end = async (signal: string) => {
    if (ending) return
    ending = true
    log.info({ signal }, 'draining')
    setTimeout(() => process.exit(1), exitMs).unref()
    rmSync(serverFile, { force: true })
    await plane.stop()
    await database.close()
    log.info({}, 'stopped')
    process.exit(0)
  }
  process.on('SIGTERM', () => void end('SIGTERM'))
  process.on('SIGINT', () => void end('SIGINT'))
}

/** SQLite has one server: a second one on the same file would give out leases that the first knows nothing of. */
async function refuseSecond(serverFile: string): Promise<void> {
  let url: string
  try {
    url = z.object({ url: z.url() }).parse(JSON.parse(readFileSync(serverFile, 'utf8'))).url
  } catch {
    return
  }
  const answers = await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(2_000) }).then(
    (response) => response.ok,
    () => false,
  )
  if (answers)
    throw new ConfigError(
      `A control plane with this data folder runs already at ${url}. Stop it first, or choose another folder with --data-dir.`,
    )
}
