import { join } from 'node:path'
import type { Server } from 'node:http'
import { modelProviders, type ModelProvider } from '../shared/runs/brokered.ts'
import { dataFiles } from '../shared/lib/places.ts'
import type { ServerConfig } from './config.ts'
import type { Bus } from './db/bus.ts'
import type { GithubClient } from './github/client.ts'
import { randomServerKey } from './db/server-keys.ts'
import { inTransaction } from './db/transaction.ts'
import type { Outbound } from './outbound/outbound.ts'
import type { RenewalDependencies } from './resources/connections/renewal.ts'
import type { CloudSetup } from './resources/dependencies.ts'
import { addNetwork } from './resources/sandboxes/network-store.ts'
import { engineNameOf, findSandbox } from './resources/sandboxes/store.ts'
import { findPermit } from './sandbox/broker/permits.ts'
import { createBrokers, createEngine } from './sandbox/engines.ts'
import { describeSize, EngineError } from './sandbox/engine.ts'
import { SandboxKeeper } from './sandbox/keeper.ts'
import { sandboxKeys, type SandboxKeys } from './sandbox/tokens.ts'
import type { Sweep } from './sweeps/sweeper.ts'

/** The part that runs agents in sandboxes, by the configuration. */
export interface Cloud {
  /** null: runs of the cloud are declined. */
  setup: CloudSetup | null
  start(): Promise<void>
  stop(): Promise<void>
  sweeps: readonly Sweep[]
}

const off: Cloud = { setup: null, start: async () => undefined, stop: async () => undefined, sweeps: [] }

/** The providers of models for which the operator pays. */
export const operatorKeysOf = (sandbox: ServerConfig['sandbox']): ModelProvider[] =>
  modelProviders.filter((provider) => sandbox !== null && sandbox.models[provider].key !== null)

export function createCloud({
  config: { sandbox, dataDir, leaseMs, sweepMs },
  ...common
}: {
  config: ServerConfig
  bus: Bus
  http: Server
  outbound: Outbound
  github: GithubClient | null
} & RenewalDependencies): Cloud {
  if (sandbox === null) return off
  const engine = createEngine(sandbox.engine)
  const { root, log } = common
  const { github } = common
  const gitHost = github && { host: github.host, tokenFor: (repository: string) => github.gitToken(repository) }
  let keys: SandboxKeys | null = null
  const brokers = createBrokers(sandbox.engine, {
    ...common,
    folder: join(dataDir, dataFiles.sandboxes),
    keyOf: (id) => keys!.brokerKeyOf(id),
    permitOf: (id) => findPermit({ ...common, gitHost, models: sandbox.models }, id),
    async recordOf(id, counted) {
      try {
        const row = await findSandbox(root, id)
        if (row !== null) await inTransaction(root, (tx) => addNetwork(tx, row.runId, counted))
      } catch (error) {
        log.warn({ err: error, sandbox: id }, 'what a sandbox asked for could not be written down')
      }
    },
  })
  let keeper: SandboxKeeper | null = null
  return {
    setup: {
      image: sandbox.image,
      operatorKeys: operatorKeysOf(sandbox),
      describeSize: (size) => describeSize(size, sandbox.sizes[size]),
      async logOf(row, lines) {
        try {
          return await engine.logs(engineNameOf(row), lines)
        } catch (error) {
          if (error instanceof EngineError) return null
          throw error
        }
      },
    },
    async start() {
      keys = sandboxKeys(await randomServerKey(common.root, 'sandboxes', common.world))
      await brokers.start()
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
        run: async () => keeper?.reconcileSoon(),
        idle: async () => keeper?.idle(),
      },
    ],
  }
}
