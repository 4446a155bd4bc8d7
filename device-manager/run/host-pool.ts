import { spawn } from 'node:child_process'
import { mkdirSync, openSync, closeSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { programUrl } from '../../shared/lib/program-file.ts'
import type { World } from '../../shared/lib/world.ts'
import type { Log } from '../log.ts'
import type { Places } from '../places.ts'
import { bootId, isAlive } from '../process/identity.ts'
import { hostNodeFlags } from '../run-host/node-flags.ts'
import { hostRecord, type HostRecord } from '../run-host/protocol.ts'
import { HostConnection } from './host-connection.ts'

export interface HostPoolOptions {
  places: Places
  world: World
  log: Log
  spoolPages: number
  unsentBytes: number
}

const startMs = 15_000
const dismissMs = 2_000
const hostMain = fileURLToPath(programUrl('device-manager/run-host'))

/** Starts run hosts, keeps one ready beside those at work, and finds those that an earlier daemon started. */
export class HostPool {
  private readonly options: HostPoolOptions
  private spare: Promise<HostConnection> | null = null
  /** The spare, once it is connected. */
  private ready: HostConnection | null = null
  private stopped = false

  constructor(options: HostPoolOptions) {
    this.options = options
  }

  /** Starts the spare, so that the next run does not wait for a Node to start. */
  warm(): void {
    if (this.stopped || this.spare) return
    const starting = this.start()
    this.spare = starting
    starting.then(
      (host) => {
        if (this.spare === starting) this.ready = host
      },
      (error: unknown) => {
        this.options.log.error({ err: error }, 'a run host could not be started')
        if (this.spare === starting) this.spare = null
      },
    )
  }

  /** The spare if it can be had without waiting. */
  takeReady(): HostConnection | null {
    const host = this.ready
    if (!host?.isOpen) return null
    this.ready = null
    this.spare = null
    return host
  }

  async take(): Promise<HostConnection> {
    const spare = this.spare
    this.spare = null
    this.ready = null
    if (spare) {
      const host = await spare.catch(() => null)
      if (host?.isOpen) return host
    }
    return this.start()
  }

  async stop(): Promise<void> {
    this.stopped = true
    const spare = await this.spare?.catch(() => null)
    this.spare = null
    this.ready = null
    if (spare) await this.dismiss(spare)
  }

  /** Hosts of this machine's present boot that still live, by their records; records of dead ones are removed. */
  survivors(): HostRecord[] {
    const { hosts } = this.options.places
    mkdirSync(hosts, { recursive: true, mode: 0o700 })
    const alive: HostRecord[] = []
    for (const name of readdirSync(hosts)) {
      if (!name.endsWith('.json')) continue
      const record = readRecord(join(hosts, name))
      if (record && record.bootId === bootId() && isAlive({ pid: record.pid, startTime: record.startTime }))
        alive.push(record)
      else {
        rmSync(join(hosts, name), { force: true })
        if (record) rmSync(record.socket, { force: true })
      }
    }
    return alive
  }

  /** The last record a host wrote of itself, or null. */
  record(hostId: string): HostRecord | null {
    return readRecord(join(this.options.places.hosts, `${hostId}.json`))
  }

  connect(record: HostRecord): Promise<HostConnection> {
    return HostConnection.open(record.socket, record, 5_000)
  }

  /** Sees the host leave: what a daemon says as the last thing before its exit may not be read any more. */
  private async dismiss(host: HostConnection): Promise<void> {
    const gone = new Promise<void>((resolve) => host.attach({ reply: () => undefined, lost: resolve }))
    host.send({ type: 'discard' })
    await Promise.race([gone, this.options.world.sleep(dismissMs)])
  }

  private async start(): Promise<HostConnection> {
    const { places, world, spoolPages, unsentBytes } = this.options
    mkdirSync(places.hosts, { recursive: true, mode: 0o700 })
    mkdirSync(places.logs, { recursive: true, mode: 0o700 })
    const hostId = world.id('h')
    const out = openSync(places.hostLog, 'a', 0o600)
    // A session of its own: the daemon's end, its terminal and its service's signals do not reach it.
    const child = spawn(
      process.execPath,
      [
        ...hostNodeFlags,
        hostMain,
        '--state-dir',
        places.stateDir,
        '--host-id',
        hostId,
        '--spool-pages',
        String(spoolPages),
        '--unsent-bytes',
        String(unsentBytes),
      ],
      {
        detached: true,
        // The pipe tells the host when this daemon is gone.
        stdio: ['pipe', out, out],
        env: { ...hostEnvironment(), NODE_COMPILE_CACHE: places.compileCache },
        cwd: places.stateDir,
      },
    )
    closeSync(out)
    child.unref()
    const pid = await new Promise<number>((resolve, reject) => {
      child.once('error', reject)
      child.once('spawn', () => resolve(child.pid ?? 0))
    })
    return this.connectWhenReady({ hostId, pid, exited: () => child.exitCode !== null || child.signalCode !== null })
  }

  private async connectWhenReady(host: { hostId: string; pid: number; exited(): boolean }): Promise<HostConnection> {
    const deadline = this.options.world.monotonic() + startMs
    for (;;) {
      const record = this.record(host.hostId)
      if (record) {
        const connection = await this.connect(record).catch(() => null)
        if (connection) return connection
      }
      if (host.exited()) throw new Error(`the run host ended at its start; see ${this.options.places.hostLog}`)
      if (this.options.world.monotonic() > deadline) throw new Error('the run host did not start in time')
      await this.options.world.sleep(10)
    }
  }
}

/** What a Node needs to start, and nothing of the daemon's own settings. */
function hostEnvironment(): Record<string, string> {
  const kept = [
    'PATH',
    'HOME',
    'USER',
    'LOGNAME',
    'SHELL',
    'LANG',
    'LC_ALL',
    'TZ',
    'TMPDIR',
    'XDG_RUNTIME_DIR',
    'NODE_EXTRA_CA_CERTS',
  ]
  return Object.fromEntries(
    kept.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
  )
}

function readRecord(path: string): HostRecord | null {
  try {
    const parsed = hostRecord.safeParse(JSON.parse(readFileSync(path, 'utf8')))
    return parsed.success ? parsed.data : null
  } catch {
    return null
  }
}
