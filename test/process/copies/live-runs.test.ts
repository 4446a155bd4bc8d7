import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { replicaState, startBalancer, type Balancer } from '../../kit/balancer.ts'
import { emptyPostgres, hasPostgres } from '../../kit/database.ts'
import { isLong } from '../../kit/forms.ts'
import { waitFor } from '../../kit/programs.ts'
import { releaseFor, signingKey, type MadeRelease } from '../../kit/releases.ts'
import { TestApi } from '../../kit/system-api.ts'
import { turnIsolationOff } from '../../kit/wall.ts'
import { Installation } from './installation.ts'

// Upgrades under runs that are live: none is lost, started twice or ended by it.

/** `COPIES_RUNS=100` takes as many as a machine is to hold: up to 10, or a multiple of 10. */
const count = Number(process.env['COPIES_RUNS'] ?? (isLong ? 20 : 4))
/** Each run asks svc in each phase, once in `pauseS` and what a busy machine adds. */
const limitMs = 600_000 + count * 15_000
/** Between two questions of a run: svc takes a quarter of a second of a processor, and they are to have time for what is tried. */
const pauseS = Math.ceil(count / 3)
/** A device takes up to 10 runs at once. */
const deviceCount = Math.ceil(count / 10)

let folder: string
let first: MadeRelease
let second: MadeRelease
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-releases-'))
  const key = signingKey()
  first = await releaseFor(folder, { version: '0.8.0', key, withNode: true })
  second = await releaseFor(folder, { version: '0.9.0', key, withNode: isLong })
}, 300_000)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** The servers of an installation: one, or two replicas behind a balancer. */
class Servers {
  readonly #machine: Installation
  readonly #env: Record<string, string>
  readonly #all: { child: ChildProcess; url: string; port: number; dataDir: string }[] = []
  #balancer: Balancer | null = null

  private constructor(machine: Installation, env: Record<string, string>) {
    this.#machine = machine
    this.#env = env
  }

  static async start(machine: Installation, databaseUrl: string | null): Promise<Servers> {
    const files = `file://${join(machine.folder, 'files')}`
    const shared = { SVC_DATABASE_URL: databaseUrl ?? '', SVC_SECRETS_KEY: 'ab'.repeat(32), SVC_FILES_URL: files }
    const servers = new Servers(machine, databaseUrl === null ? {} : shared)
    const dataDirs = [machine.dataDir, ...(databaseUrl === null ? [] : [join(machine.folder, 'second')])]
    for (const dataDir of dataDirs) {
      const { child, url } = await machine.startServer(0, servers.#env, dataDir)
      servers.#all.push({ child, url, port: Number(new URL(url).port), dataDir })
    }
    if (databaseUrl !== null) servers.#balancer = await startBalancer(servers.#all)
    return servers
  }

  /** Where clients and devices find them. */
  get url(): string {
    return this.#balancer?.proxy.url ?? this.#all[0]!.url
  }

  get api(): TestApi {
    return new TestApi(() => ({ url: this.url, token: this.#machine.loginToken }))
  }

  /** Restarts one after another, each once the one before is ready; `between` is called where only some are of what is current. */
  async restart(between: () => Promise<void>): Promise<void> {
    for (const [at, server] of this.#all.entries()) {
      if (at > 0) {
        await waitFor(async () => (await replicaState(this.#all[at - 1]!)) === 'ready', 'a replica is ready')
        await between()
      }
      server.child.kill('SIGTERM')
      await once(server.child, 'exit')
      server.child = (await this.#machine.startServer(server.port, this.#env, server.dataDir)).child
    }
  }

  async close(): Promise<void> {
    await this.#balancer?.close()
  }
}

async function upgradeUnderRuns(databaseUrl: string | null): Promise<void> {
  const machine = new Installation()
  let servers: Servers | null = null
  try {
    await machine.install(first)
    servers = await Servers.start(machine, databaseUrl)
    const { api, url } = servers
    await machine.works(['login', '--server', url, '--token', '-'], { input: machine.loginToken })
    const stateDirs = [machine.stateDir]
    while (stateDirs.length < deviceCount) stateDirs.push(join(machine.folder, `state${stateDirs.length + 1}`))
    const onDevice = (SVC_STATE_DIR: string, ...words: string[]) =>
      machine.works(['device', ...words], { env: { SVC_STATE_DIR } })
    for (const stateDir of stateDirs) {
      mkdirSync(stateDir, { mode: 0o700 })
      turnIsolationOff(stateDir)
      await onDevice(stateDir, 'connect')
      await onDevice(stateDir, 'set', '--max-concurrent', String(count / deviceCount))
    }
    const gate = machine.makeFolder('gate')
    // Says that it was started, and goes on until it is let go, asking svc meanwhile.
    const command = `echo $SVC_RUN_ID >>${gate}/started; while [ ! -e ${gate}/go ]; do svc whoami >/dev/null && touch ${gate}/$SVC_RUN_ID.$(cat ${gate}/phase); sleep ${pauseS}; done`
    const enter = (phase: string) => writeFileSync(join(gate, 'phase'), phase)
    enter('begun')
    const agent = await api.createAgent({ name: 'worker', harness: 'command', command })
    const runs: string[] = []
    // One after another: what is tried here is what becomes of runs, not a hundred starts at one moment beside their server.
    while (runs.length < count) runs.push(await api.startRun(agent.id))
    const haveAsked = (phase: string) =>
      waitFor(() => runs.every((id) => existsSync(join(gate, `${id}.${phase}`))), `all runs ask svc: ${phase}`, {
        ms: limitMs / 4,
      })
    await haveAsked('begun')
    const askAgain = async (phase: string) => {
      enter(phase)
      await haveAsked(phase)
      rmSync(join(gate, 'phase'))
      for (const id of runs) rmSync(join(gate, `${id}.${phase}`))
      enter('between')
    }
    const switchTo = async (words: readonly string[], version: string) => {
      const before = machine.daemonPid
      const result = JSON.parse(await machine.works(['upgrade', ...words])) as { daemon: { runs: number } | null }
      expect(result.daemon).toEqual({ runs: count / deviceCount })
      expect(machine.daemonPid).not.toBe(before)
      // A copy knows the device manager of the folder that it is told of.
      for (const stateDir of stateDirs.slice(1)) await onDevice(stateDir, 'restart')
      // The server is its operator's to restart: it goes on, and then is what is current.
      await servers!.restart(() => askAgain('half'))
      for (const stateDir of stateDirs)
        expect(JSON.parse(await onDevice(stateDir, 'status')), stateDir).toMatchObject({ version })
      await askAgain(version)
    }
    await switchTo([second.folder], '0.9.0')
    await switchTo(['--rollback'], '0.8.0')
    if (isLong) await switchTo([second.folder], '0.9.0')
    writeFileSync(join(gate, 'go'), '')
    for (const id of runs) expect((await api.waitForRun(id, 'succeeded')).exitReason, id).toBe('completed')
    const started = readFileSync(join(gate, 'started'), 'utf8').trim().split('\n')
    expect(started.toSorted()).toEqual(runs.toSorted())
  } finally {
    await machine.remove()
    await servers?.close()
  }
}

test(
  'runs go on while daemon and server are upgraded, rolled back and upgraded again',
  () => upgradeUnderRuns(null),
  limitMs,
)

// Who decides is the server; the short form shows what a switch does to a device and its runs.
test.skipIf(!isLong || !hasPostgres())(
  'the same with two replicas, which are restarted in turn',
  async () => {
    const database = await emptyPostgres()
    try {
      await upgradeUnderRuns(database.url)
    } finally {
      await database.close()
    }
  },
  limitMs,
)

test('a copy runs by what it brings, and starts a server, a device and a run', async () => {
  const machine = new Installation()
  try {
    const began = performance.now()
    await machine.install(first)
    const { api } = await machine.startServer()
    await machine.works(['login'])
    machine.makeFolder('state')
    turnIsolationOff(machine.stateDir)
    await machine.works(['device', 'connect'])
    const agent = await api.createAgent({ name: 'hello', harness: 'command', command: 'echo hello' })
    const run = await api.startRun(agent.id)
    expect((await api.waitForRun(run, 'succeeded')).exitReason).toBe('completed')
    expect(realpathSync(join(machine.bin, 'svc'))).toBe(join(realpathSync(machine.prefix), 'versions/0.8.0/bin/svc'))
    // A minute on a machine that does nothing else; this one may be busy.
    expect(performance.now() - began).toBeLessThan(180_000)
  } finally {
    await machine.remove()
  }
}, 300_000)
