import type { Knex } from 'knex'
import type { Service } from '../shared/lib/services.ts'
import type { World } from '../shared/lib/world.ts'
import { countedPlace } from './blobs/counted-place.ts'
import type { UsedPlace } from './blobs/place.ts'
import { WriteWatch } from './db/write-watch.ts'
import { DatabaseGauges } from './gauges/database-gauges.ts'
import { addProcessGauges, type ProcessGaugesOptions } from './gauges/process-gauges.ts'
import { refusedSignIn } from './gauges/refused-sign-ins.ts'
import type { RequestRecord } from './http/kernel.ts'
import type { Log } from './process/log.ts'
import { createMetrics, type Metrics } from './process/metrics.ts'
import { RunLog } from './run/run-log.ts'
import { WaitingRuns } from './run/sweeps/waiting-runs.ts'
import type { SweepObserver } from './sweeps/sweeper.ts'

interface WatchOptions {
  config: { readonly leaseMs: number }
  database: { readonly root: Knex }
  world: World
  log: Log
  /** Metrics of the process are this server's. */
  ownsProcess: boolean
}

/** What is counted and logged of a replica for whoever operates it: each part is given the means to tell what happens in it. */
export class Watch {
  readonly metrics: Metrics
  readonly waitingRuns = new WaitingRuns()
  readonly services: readonly Service[]
  private readonly options: WatchOptions
  private readonly gauges: DatabaseGauges
  private text: Promise<string> | null = null

  constructor(options: WatchOptions) {
    this.options = options
    const { database, config, world, log, ownsProcess } = options
    const { root } = database
    this.metrics = createMetrics({ defaults: ownsProcess })
    const { registry } = this.metrics
    this.gauges = new DatabaseGauges({ root, world, log, registry, leaseMs: config.leaseMs })
    this.services = [
      new WriteWatch({ root, metrics: this.metrics, log }),
      new RunLog({ root, metrics: this.metrics, log }),
    ]
  }

  /** The parts that are asked when the metrics are read. */
  add(parts: Pick<ProcessGaugesOptions, 'links' | 'bus' | 'workers'>): void {
    const { database, world } = this.options
    const { metrics, waitingRuns } = this
    addProcessGauges({ root: database.root, world, registry: metrics.registry, waitingRuns, ...parts })
  }

  get contentType(): string {
    return this.metrics.registry.contentType
  }

  /** The metrics as Prometheus reads them. Those who ask at the same time get the same text. */
  read(): Promise<string> {
    return (this.text ??= this.write().finally(() => (this.text = null)))
  }

  readonly requested = ({ routeId, method, status, code, durationMs, requestId }: RequestRecord): void => {
    const { requests, requestSeconds, signInsRefused } = this.metrics
    const route = routeId ?? 'none'
    requests.inc({ route, method, status: String(status) })
    requestSeconds.observe({ route }, durationMs / 1000)
    const refused = refusedSignIn({ routeId, method, status, code, durationMs, requestId })
    if (refused !== null) signInsRefused.inc(refused)
  }

  readonly sweeps: SweepObserver = {
    begin: (names) => {
      for (const sweep of names) {
        this.metrics.sweeps.inc({ sweep }, 0)
        this.metrics.sweepFailures.inc({ sweep }, 0)
      }
    },
    swept: (sweep, end) => {
      if (end === 'failed') return this.metrics.sweepFailures.inc({ sweep })
      this.metrics.sweeps.inc({ sweep })
      this.metrics.sweptAt.set({ sweep }, this.options.world.now() / 1_000)
    },
    itemFailed: () => this.metrics.sweepItemFailures.inc(),
  }

  readonly outboxFailed = (end: 'again' | 'given_up'): void => this.metrics.outboxFailures.inc({ end })
  readonly deliveryFailed = (end: 'again' | 'given_up'): void => this.metrics.deliveryFailures.inc({ end })

  /** The place of files, of which each failure counts. */
  counted(place: UsedPlace): UsedPlace {
    return countedPlace(place, (act) => this.metrics.storageFailures.inc({ act }))
  }

  private async write(): Promise<string> {
    await this.gauges.refresh()
    return this.metrics.registry.metrics()
  }
}
