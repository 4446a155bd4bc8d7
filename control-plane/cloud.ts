import { join } from 'node:path'
import type { Server } from 'node:http'
import type { Knex } from 'knex'
import { dataFiles } from '../shared/lib/places.ts'
import type { World } from '../shared/lib/world.ts'
import type { ServerConfig } from './config.ts'
import type { Bus } from './db/bus.ts'
import { randomServerKey } from './db/server-keys.ts'
import { ConfigError } from './process/config-error.ts'
import type { Log } from './process/log.ts'
import { Brokers } from './sandbox/broker/brokers.ts'
import { DockerEngine } from './sandbox/docker/engine.ts'
import { SandboxKeeper } from './sandbox/keeper.ts'
import { sandboxKeys } from './sandbox/tokens.ts'
import type { Sweep } from './sweeps/sweeper.ts'

/** What runs agents in sandboxes, by the configuration. */
export interface Cloud {
  /** False: runs of the cloud are declined. */
  isOn: boolean
  start(): Promise<void>
  stop(): Promise<void>
  sweeps: readonly Sweep[]
}

const off: Cloud = { isOn: false, start: async () => undefined, stop: async () => undefined, sweeps: [] }

const engineCallMs = 20_000

export function createCloud({
  config: { sandbox, dataDir, leaseMs, sweepMs },
  ...common
}: {
  config: ServerConfig
  root: Knex
  world: World
  log: Log
  bus: Bus
  http: Server
}): Cloud {
  if (sandbox === null) return off
  const folder = join(dataDir, dataFiles.sandboxes)
  const trouble = Brokers.troubleOf(folder)
  if (trouble !== null) throw new ConfigError(trouble)
  const engine = new DockerEngine({ socket: sandbox.socket, timeoutMs: engineCallMs })
  const brokers = new Brokers({ ...common, folder })
  let keeper: SandboxKeeper | null = null
  return {
    isOn: true,
    async start() {
      const keys = sandboxKeys(await randomServerKey(common.root, 'sandboxes', common.world))
      keeper = new SandboxKeeper({ ...common, ...sandbox, engine, brokers, keys, leaseMs })
      keeper.start()
    },
    async stop() {
      await keeper?.stop()
    },
    sweeps: [
      {
        name: 'sandboxes',
        everyMs: sweepMs,
        run: async () => keeper?.lookSoon(),
        idle: async () => keeper?.idle(),
      },
    ],
  }
}
