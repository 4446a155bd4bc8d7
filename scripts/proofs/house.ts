import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import os, { tmpdir, uptime } from 'node:os'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { readConfig as readServerConfig, type ServerConfig } from '../../control-plane/config.ts'
import { CostlyPool } from '../../control-plane/costly/pool.ts'
import { migrate } from '../../control-plane/db/migrate.ts'
import { openDatabase, type Database } from '../../control-plane/db/open.ts'
import { firstStart } from '../../control-plane/operator/first-start.ts'
import { silentLog } from '../../control-plane/process/log.ts'
import { ControlPlane } from '../../control-plane/server.ts'
import { EnginePool } from '../../control-plane/workflows/engine/pool.ts'
import { Daemon } from '../../device-manager/daemon/daemon.ts'
import type { StartHost } from '../../device-manager/run/hosts/host-process.ts'
import { readConfig as readDaemonConfig } from '../../device-manager/setup/config.ts'
import { placesIn } from '../../device-manager/setup/places.ts'
import { enrolReply, type EnrolReply } from '../../shared/device/control.ts'
import { hastenedWorld, type HastenedWorld } from '../../test/kit/hastened-world.ts'
import { waitFor } from '../../test/kit/programs.ts'
import { startProxy, type TestProxy } from '../../test/kit/proxy.ts'
import { TestApi } from '../../test/kit/system-api.ts'
import { turnIsolationOff } from '../../test/kit/wall.ts'
import { standInHosts, type StandInRun } from './stand-in-host.ts'

// The control plane and daemons in one process, under one clock, which passes as fast as the proof wants. Between them are a
// proxy and real sockets; what they keep lies in real files, or in PostgreSQL.

export interface House {
  world: HastenedWorld
  api: TestApi
  proxy: TestProxy
  /** Runs that have been started, by id. */
  runs: Map<string, StandInRun>
  stopServers(): Promise<void>
  startServers(): Promise<void>
  stopDaemons(): Promise<void>
  startDaemons(): Promise<void>
  close(): Promise<void>
}

interface HouseOptions {
  databaseUrl: string | null
  devices: number
  /** Runs that each takes at once. */
  capacity: number
}

export async function openHouse({ databaseUrl, devices, capacity }: HouseOptions): Promise<House> {
  const root = mkdtempSync(join(tmpdir(), 'svc-returns-'))
  const world = hastenedWorld()
  passBootClock(world)
  const log = silentLog
  const workers = { costly: new CostlyPool({ world, log }), engine: new EnginePool({ world, log }) }
  const replicas = databaseUrl === null ? 1 : 2
  const configs = Array.from({ length: replicas }, (_, index) => serverConfig(root, databaseUrl, index))
  const databases = configs.map((config) =>
    openDatabase({ url: config.databaseUrl, poolSize: 8, readMs: 60_000, writeMs: 60_000 }),
  )
  await migrate(databases[0]!.root, world.now())
  const first = await databases[0]!.root.transaction((tx) => firstStart(tx, world))
  let planes: ControlPlane[] = []
  const makePlane = async (config: ServerConfig, index: number, port: number) => {
    const database: Database = databases[index]!
    const own = { ...config, port }
    const plane = await ControlPlane.create({ config: own, database, world, log, ownsProcess: false, workers })
    await plane.start()
    return plane
  }
  let ports = configs.map(() => 0)
  const startServers = async () => {
    planes = []
    for (const [index, config] of configs.entries()) planes.push(await makePlane(config, index, ports[index]!))
    ports = planes.map(({ localUrl }) => Number(new URL(localUrl).port))
  }
  await startServers()
  let turn = 0
  const next = () => ports[turn++ % ports.length]!
  const proxy = await startProxy(() => ({ host: '127.0.0.1', port: next() }))
  const api = new TestApi(() => ({ url: `http://127.0.0.1:${next()}`, token: first!.token }))
  const runs = new Map<string, StandInRun>()
  // It ends with this process, whose death closes the pipe.
  const idler = spawn('cat', { stdio: ['pipe', 'ignore', 'ignore'] })
  const startHost = standInHosts(world, { pid: idler.pid!, started: (run) => void runs.set(run.runId, run) })
  const identities: EnrolReply[] = []
  for (let number = 1; number <= devices; number++)
    identities.push(await enrol(api, { root, number, url: proxy.url, capacity }))
  let daemons: Daemon[] = []
  const startDaemons = async () => {
    daemons = identities.map((identity, index) => makeDaemon({ root, index, identity, world, startHost }))
    for (const daemon of daemons) await daemon.start()
  }
  const stopDaemons = async () => {
    for (const { supervisor } of daemons)
      // The end of its process would close these connections.
      for (const { runId } of supervisor.list()) supervisor.hosts.release(runId)
    await Promise.all(daemons.map((daemon) => daemon.stop()))
  }
  const stopServers = async () => void (await Promise.all(planes.map((plane) => plane.stop())))
  await startDaemons()
  await waitFor(() => daemons.every(({ link }) => link.isOpen()), 'all devices are linked', { ms: 60_000 })
  return {
    world,
    api,
    proxy,
    runs,
    stopServers,
    startServers,
    stopDaemons,
    startDaemons,
    async close() {
      await stopDaemons()
      await stopServers()
      await proxy.close()
      for (const database of databases) await database.close()
      await Promise.all([workers.costly.stop(), workers.engine.stop()])
      idler.kill('SIGKILL')
      rmSync(root, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

function serverConfig(root: string, databaseUrl: string | null, index: number): ServerConfig {
  const dataDir = join(root, `server${index}`)
  mkdirSync(dataDir)
  const settings = {
    SVC_PORT: '0',
    SVC_DATA_DIR: dataDir,
    SVC_RATE_LIMIT_PER_MINUTE: '100000000',
    ...(databaseUrl !== null && { SVC_DATABASE_URL: databaseUrl, SVC_FILES_URL: `file://${join(root, 'files')}` }),
  }
  return readServerConfig(settings, {})
}

const stateOf = (root: string, number: number) => join(root, `device${number}`)

async function enrol(
  api: TestApi,
  { root, number, url, capacity }: { root: string; number: number; url: string; capacity: number },
): Promise<EnrolReply> {
  mkdirSync(stateOf(root, number), { mode: 0o700 })
  turnIsolationOff(stateOf(root, number))
  const body = {
    displayName: `device${number}`,
    hostname: `device${number}`,
    platform: process.platform,
    version: '0.0.0',
  }
  const reply = enrolReply.parse(await api.call('POST', '/api/device/enrol', body))
  await api.call('PATCH', `/devices/${reply.deviceId}`, { maxConcurrentRuns: capacity })
  return { ...reply, server: url }
}

interface DaemonParts {
  root: string
  index: number
  identity: EnrolReply
  world: HastenedWorld
  startHost: StartHost
}

function makeDaemon({ root, index, identity, world, startHost }: DaemonParts): Daemon {
  const { token, ...own } = identity
  const stateDir = stateOf(root, index + 1)
  const env = { SVC_STATE_DIR: stateDir, HOME: root, SHELL: '/bin/sh' }
  return new Daemon({
    config: readDaemonConfig(env, { homeDir: root, shell: '/bin/sh' }),
    places: placesIn(stateDir),
    world,
    log: silentLog,
    identity: own,
    token,
    keepsToken: false,
    isFixed: true,
    startHost,
    version: '0.0.0',
    onWork: () => undefined,
    executed: () => Promise.reject(new Error('there is no wall here')),
    onRefused: () => undefined,
    onFatal: (reason, text) => {
      throw new Error(`a daemon has to end: ${reason} ${text}`)
    },
  })
}

/** The clock since the boot, which tells how long ago a run ended, passes with the others. */
function passBootClock(world: HastenedWorld): void {
  const [from, at] = [uptime(), world.monotonic()]
  os.uptime = () => from + (world.monotonic() - at) / 1_000
  syncBuiltinESMExports()
}
