import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'

/** The server's Prometheus metrics; one registry per server, so that tests may run several in one process. */
export function createMetrics(options: { defaults: boolean }) {
  const registry = new Registry()
  if (options.defaults) collectDefaultMetrics({ register: registry })
  const registers = [registry]
  return {
    registry,
    requests: new Counter({
      name: 'svc_http_requests_total',
      help: 'HTTP requests by route, method and status.',
      labelNames: ['route', 'method', 'status'],
      registers,
    }),
    requestSeconds: new Histogram({
      name: 'svc_http_request_seconds',
      help: 'Time to answer a request.',
      labelNames: ['route'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
      registers,
    }),
    transactionsAgain: new Counter({
      name: 'svc_transactions_again_total',
      help: 'Transactions done again after the database undid them for another one, by cause.',
      labelNames: ['cause'],
      registers,
    }),
    transactionsGivenUp: new Counter({
      name: 'svc_transactions_given_up_total',
      help: 'Transactions that were still undone at their last attempt, by cause.',
      labelNames: ['cause'],
      registers,
    }),
    linkCloses: new Counter({
      name: 'svc_link_closes_total',
      help: 'Links closed by this replica, by reason.',
      labelNames: ['reason'],
      registers,
    }),
    heartbeats: new Counter({ name: 'svc_heartbeats_total', help: 'Heartbeats received.', registers }),
    eventsStored: new Counter({ name: 'svc_run_events_total', help: 'Run events stored.', registers }),
    eventBytesStored: new Counter({
      name: 'svc_run_event_bytes_total',
      help: 'Bytes of run events stored.',
      registers,
    }),
    writesRefused: new Counter({
      name: 'svc_fence_refusals_total',
      help: 'Writes about a run that were refused, by reason.',
      labelNames: ['reason'],
      registers,
    }),
    integrityErrors: new Counter({
      name: 'svc_integrity_errors_total',
      help: 'Events or logs whose content did not match what was said of it.',
      registers,
    }),
    runChanges: new Counter({
      name: 'svc_run_changes_total',
      help: 'Runs that came into another phase, by the event that brought them there.',
      labelNames: ['event'],
      registers,
    }),
    runWaitSeconds: new Histogram({
      name: 'svc_run_wait_seconds',
      help: 'Time from the making of a run until a device took it.',
      buckets: [0.1, 0.5, 1, 5, 15, 60, 300, 900, 3_600, 14_400, 86_400],
      registers,
    }),
    sweeps: new Counter({
      name: 'svc_sweeps_total',
      help: 'Rounds of sweeps that came to their end.',
      labelNames: ['sweep'],
      registers,
    }),
    sweepFailures: new Counter({
      name: 'svc_sweep_failures_total',
      help: 'Rounds of sweeps that failed.',
      labelNames: ['sweep'],
      registers,
    }),
    sweepItemFailures: new Counter({
      name: 'svc_sweep_item_failures_total',
      help: 'Single things at which a sweep failed; it comes again.',
      registers,
    }),
    sweptAt: new Gauge({
      name: 'svc_sweep_last_success_timestamp_seconds',
      help: 'When a round of a sweep last came to its end.',
      labelNames: ['sweep'],
      registers,
    }),
    databaseFailures: zeroed(
      new Counter({
        name: 'svc_database_failures_total',
        help: 'Queries and waits for a connection that failed since the database was away, slow or full.',
        labelNames: ['reason'],
        registers,
      }),
      ['database_unavailable', 'query_timeout', 'disk_full'].map((reason) => ({ reason })),
    ),
    storageFailures: zeroed(
      new Counter({
        name: 'svc_storage_failures_total',
        help: 'Acts at the storage of files that failed.',
        labelNames: ['act'],
        registers,
      }),
      ['put', 'open', 'has', 'remove'].map((act) => ({ act })),
    ),
    outboxFailures: zeroed(
      new Counter({
        name: 'svc_outbox_failures_total',
        help: 'Entries of the outbox that this replica failed to act on: tried again, or given up.',
        labelNames: ['end'],
        registers,
      }),
      ends,
    ),
    deliveryFailures: zeroed(
      new Counter({
        name: 'svc_github_delivery_failures_total',
        help: 'Deliveries of GitHub that could not be followed: tried again, or given up.',
        labelNames: ['end'],
        registers,
      }),
      ends,
    ),
    signInsRefused: new Counter({
      name: 'svc_sign_ins_refused_total',
      help: 'Requests and links that were refused for who sent them, by the way they came and the reason.',
      labelNames: ['way', 'reason'],
      registers,
    }),
    runsEnded: new Counter({
      name: 'svc_runs_ended_total',
      help: 'Runs ended, by exit reason.',
      labelNames: ['exit_reason'],
      registers,
    }),
  }
}

const ends = [{ end: 'again' }, { end: 'given_up' }]

/** A counter begins with these values: what comes first is no increase where there was nothing before. */
function zeroed<Label extends string>(counter: Counter<Label>, labels: readonly Record<Label, string>[]) {
  for (const each of labels) counter.inc(each, 0)
  return counter
}

export type Metrics = ReturnType<typeof createMetrics>

/** Shows by how much the database's clock is ahead of this machine's. */
export function measureClock({ registry }: Pick<Metrics, 'registry'>, clock: { readonly offsetMs: number }): void {
  const gauge = new Gauge({
    name: 'svc_clock_offset_seconds',
    help: "By how much the database's clock is ahead of this machine's.",
    registers: [],
    collect() {
      this.set(clock.offsetMs / 1_000)
    },
  })
  registry.registerMetric(gauge)
}
