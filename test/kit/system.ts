import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TestRunner } from 'vitest'
import { linkLimits } from '../../shared/device/limits.ts'
import { nothingNames, processesNaming } from './programs.ts'
import { startProxy, type TestProxy } from './proxy.ts'
import type { TestApi } from './system-api.ts'
import { TestDevice, type DeviceOptions } from './system-device.ts'
import { TestServer } from './system-server.ts'
import { tellRuns } from './told-runs.ts'

export interface SystemOptions {
  /** Settings of the control plane and of the daemon (`SVC_...`). */
  serverEnv?: Readonly<Record<string, string>>
  deviceEnv?: Readonly<Record<string, string>>
  /** Replicas of the control plane; more than one need a PostgreSQL. */
  replicas?: number
  databaseUrl?: string
  /** The daemon reaches the control plane through a proxy of the test. */
  withProxy?: boolean
  /** Devices to start with (default 1). */
  devices?: number
  /** Runs each device takes at once (default 10). */
  capacity?: number
  /** Says what its devices are to be like. */
  device?: Pick<DeviceOptions, 'diskMegabytes' | 'isWalled' | 'via'>
  /** The folders of other programs than this checkout's. */
  programs?: { server?: string; device?: string }
}

/** All durations of the link, divided: a cut of 100 s becomes one of `100 / factor`. */
export function shortDurations(factor: number): Pick<SystemOptions, 'serverEnv' | 'deviceEnv'> {
  const divided = (durations: Record<string, number>) =>
    Object.fromEntries(Object.entries(durations).map(([name, ms]) => [name, String(Math.round(ms / factor))]))
  const both = { SVC_PING_MS: linkLimits.pingMs, SVC_DEAD_MS: linkLimits.deadMs }
  return {
    serverEnv: divided({ ...both, SVC_HEARTBEAT_MS: linkLimits.heartbeatMs, SVC_LEASE_MS: linkLimits.leaseMs }),
    deviceEnv: divided({
      ...both,
      SVC_RECONNECT_MIN_MS: linkLimits.reconnectMinMs,
      SVC_RECONNECT_MAX_MS: linkLimits.reconnectMaxMs,
    }),
  }
}

/** The whole system as real processes in a folder of its own: control plane, devices, and what runs on them. */
export class TestSystem {
  readonly root: string
  readonly servers: readonly TestServer[]
  readonly devices: TestDevice[] = []
  readonly #options: SystemOptions
  #proxy: TestProxy | null = null
  #behindProxy: TestServer | null = null

  private constructor(options: SystemOptions) {
    this.#options = options
    this.root = realpathSync(mkdtempSync(join(tmpdir(), 'svc-system-')))
    const { serverEnv = {}, databaseUrl = null, replicas = 1 } = options
    const programs = options.programs?.server
    // Replicas share the folder of their files; a release that knows of no files ignores the setting.
    const env = replicas > 1 ? { SVC_FILES_URL: `file://${join(this.root, 'files')}`, ...serverEnv } : serverEnv
    const servers: TestServer[] = []
    for (let number = 1; number <= replicas; number++) {
      const name = `server${number}`
      const tokenOf = servers[0] ?? null
      servers.push(new TestServer({ name, root: this.root, env, databaseUrl, tokenOf, programs }))
    }
    this.servers = servers
  }

  static async start(options: SystemOptions = {}): Promise<TestSystem> {
    const system = new TestSystem(options)
    try {
      await system.#begin()
      return system
    } catch (error) {
      await system.stop().catch(() => undefined)
      throw error
    }
  }

  async #begin(): Promise<void> {
    const { devices = 1, withProxy = false } = this.#options
    for (const server of this.servers) await server.start()
    if (withProxy)
      this.#proxy = await startProxy(() => ({ host: '127.0.0.1', port: (this.#behindProxy ?? this.server).port }))
    for (let number = 1; number <= devices; number++) await this.addDevice()
  }

  get server(): TestServer {
    return this.servers[0]!
  }
  get api(): TestApi {
    return this.server.api
  }
  get device(): TestDevice {
    return this.devices[0]!
  }
  get proxy(): TestProxy {
    if (!this.#proxy) throw new Error('this system has no proxy')
    return this.#proxy
  }

  /** The proxy leads new connections to that replica, as a load balancer does. */
  routeTo(server: TestServer): void {
    this.#behindProxy = server
  }

  /** Makes a device and starts its daemon. `server`: the replica it is linked to. */
  async addDevice(server: TestServer = this.server, env: Readonly<Record<string, string>> = {}): Promise<TestDevice> {
    const device = this.makeDevice(env)
    await device.prepare()
    await device.enrol(server.api, this.#proxy?.url ?? server.url)
    const { deviceId } = device.identity
    await server.api.call('PATCH', `/devices/${deviceId}`, { maxConcurrentRuns: this.#options.capacity ?? 10 })
    await device.start()
    return device
  }

  /** A device without an identity, not started. */
  makeDevice(env: Readonly<Record<string, string>> = {}): TestDevice {
    const name = `device${this.devices.length + 1}`
    const own = {
      name,
      root: this.root,
      env: { SVC_DATA_DIR: this.server.dataDir, ...this.#options.deviceEnv, ...env },
      programs: this.#options.programs?.device,
    }
    const device = new TestDevice({ ...this.#options.device, ...own })
    this.devices.push(device)
    return device
  }

  /**
   * Ends all programs, fails when something of them lives on, and removes all files (`FAULT_KEEP` keeps them). When the test
   * has failed, its runs are told before.
   */
  async stop(): Promise<void> {
    this.#proxy?.heal()
    if (TestRunner.getCurrentTest()?.result?.state === 'fail') {
      const told = await tellRuns(this.api).catch((error: unknown) => `Its runs cannot be read: ${String(error)}`)
      process.stderr.write(`${told}\n`)
    }
    const running = [
      ...this.devices.filter((device) => device.isRunning),
      ...this.servers.filter((server) => server.isRunning),
    ]
    const ends = await Promise.allSettled(running.map((program) => program.end()))
    await this.#proxy?.close()
    for (const device of this.devices) await device.cleanUp()
    try {
      await nothingNames(this.root)
      for (const end of ends) if (end.status === 'rejected') throw end.reason
    } finally {
      for (const { pid } of processesNaming(this.root)) kill(pid)
      if (process.env['FAULT_KEEP']) process.stderr.write(`kept: ${this.root}\n`)
      else rmSync(this.root, { recursive: true, force: true, maxRetries: 5 })
    }
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It left by itself.
  }
}
