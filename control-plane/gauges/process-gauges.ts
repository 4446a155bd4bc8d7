import { Gauge, type Registry } from 'prom-client'
import type { Knex } from 'knex'
import type { World } from '../../shared/lib/world.ts'
import type { Bus } from '../db/bus.ts'
import { poolUseOf } from '../db/pool-use.ts'
import type { LinkRegistry } from '../link/registry.ts'
import type { WaitingRuns } from '../run/sweeps/waiting-runs.ts'

export interface ProcessGaugesOptions {
  root: Knex
  world: Pick<World, 'now'>
  registry: Registry
  links: Pick<LinkRegistry, 'size' | 'spoolBytes'>
  bus: Pick<Bus, 'lagMs'>
  waitingRuns: WaitingRuns
  /** The pools of worker threads by their names; null: this server has none of that name. */
  workers: Readonly<Record<string, { readonly use: { running: number; waiting: number } } | null>>
}

/** Registers the gauges of what this replica knows without asking anybody; their values are taken when the metrics are read. */
export function addProcessGauges({ root, world, registry, ...parts }: ProcessGaugesOptions): void {
  const { links, bus, waitingRuns, workers } = parts
  const gauge = (name: string, help: string, collect: (gauge: Gauge) => void, ...labelNames: string[]) =>
    new Gauge({
      name,
      help,
      labelNames,
      registers: [registry],
      collect() {
        collect(this)
      },
    })
  gauge('svc_links', 'Devices linked to this replica.', (of) => of.set(links.size))
  gauge('svc_links_spool_bytes', 'Bytes of events that linked devices hold until they are acknowledged.', (of) =>
    of.set(links.spoolBytes),
  )
  gauge('svc_outbox_lag_seconds', 'Time since this replica had read the outbox to its end.', (of) =>
    of.set(Math.max(0, bus.lagMs()) / 1_000),
  )
  gauge(
    'svc_database_connections',
    'Connections of this replica to its database, by whether they are used.',
    (of) => {
      const use = poolUseOf(root)
      of.set({ state: 'used' }, use?.used ?? 0)
      of.set({ state: 'idle' }, use?.idle ?? 0)
    },
    'state',
  )
  gauge('svc_database_connections_max', 'Connections that this replica may have.', (of) =>
    of.set(poolUseOf(root)?.most ?? 0),
  )
  gauge('svc_database_connections_awaited', 'Those who wait for a connection.', (of) =>
    of.set(poolUseOf(root)?.waiting ?? 0),
  )
  gauge(
    'svc_worker_jobs',
    'Jobs of worker threads, by pool and by whether they run or wait.',
    (of) => {
      for (const [pool, workerPool] of Object.entries(workers)) {
        if (workerPool === null) continue
        const { use } = workerPool
        of.set({ pool, state: 'running' }, use.running)
        of.set({ pool, state: 'waiting' }, use.waiting)
      }
    },
    'pool',
    'state',
  )
  gauge(
    'svc_runs_waiting',
    'Runs that wait, by what holds them, as the last round of the sweep found.',
    (of) => {
      for (const [gate, { count }] of waitingRuns.total()) of.set({ gate }, count)
    },
    'gate',
  )
  gauge(
    'svc_runs_waiting_oldest_seconds',
    'Age of the oldest run that waits, by what holds it, as the last round of the sweep found.',
    (of) => {
      for (const [gate, { oldestAt }] of waitingRuns.total())
        of.set({ gate }, oldestAt === null ? 0 : Math.max(0, world.now() - oldestAt) / 1_000)
    },
    'gate',
  )
}
