import type Koa from 'koa'
import type { Knex } from 'knex'
import type { World } from '../../shared/lib/world.ts'
import type { CostlyPool } from '../costly/pool.ts'
import type { WakeContext } from '../run/wakes/wake.ts'
import type { Limiter } from '../http/limits.ts'
import type { Log } from '../process/log.ts'
import type { Sweep } from '../sweeps/sweeper.ts'
import { createGithubClient, type GithubClient } from './client.ts'
import { removeOldDeliveries } from './delivery-store.ts'
import { DeliveryWorker } from './delivery-worker.ts'
import { githubReceiver } from './receiver.ts'
import { workflowChecksSweep } from './workflow-checks.ts'
import { isInstalled, repositoryHost, type GithubSettings } from './settings.ts'

/** The parts of this server that have to do with GitHub. */
export interface GithubConnection {
  client: GithubClient | null
  isInstalled: boolean
  receiver(by: { limiter: Limiter; costly: Pick<CostlyPool, 'run'> }): Koa.Middleware
  sweeps: readonly Sweep[]
  /** Resolves when no delivery is being processed. */
  idle(): Promise<void>
  stop(): Promise<void>
}

/** The time that deliveries are kept, to recognise repeated ones. */
const rememberedMs = 30 * 24 * 3_600_000

export function connectGithub(
  settings: GithubSettings,
  options: {
    root: Knex
    world: World
    log: Log
    everyMs: number
    wakeContext: WakeContext
    /** Is told when a delivery failed, and when it is given up for that. */
    onDeliveryFailed?: (end: 'again' | 'given_up') => void
  },
): GithubConnection {
  const { root, world, log, everyMs, wakeContext, onDeliveryFailed } = options
  const client = createGithubClient(settings, world)
  const host = repositoryHost(settings.apiUrl)
  const worker = new DeliveryWorker({ root, world, log, client, host, wakeContext }, onDeliveryFailed)
  return {
    client,
    isInstalled: isInstalled(settings),
    receiver: (by) =>
      githubReceiver({ root, world, ...by, secret: settings.webhookSecret, onStored: () => worker.poke() }),
    sweeps: [
      workflowChecksSweep({ root, world, log, client }),
      {
        name: 'github_deliveries',
        everyMs,
        // The sweep does not wait for it: a slow GitHub must not hold up other sweeps.
        run: () => Promise.resolve(worker.poke()),
      },
      {
        name: 'old_github_deliveries',
        everyMs: 3_600_000,
        run: async ({ now }) => void (await removeOldDeliveries(root, now - rememberedMs)),
      },
    ],
    idle: () => worker.idle(),
    stop: () => worker.stop(),
  }
}
