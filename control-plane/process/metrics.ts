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
    links: new Gauge({ name: 'svc_links', help: 'Devices linked to this replica.', registers }),
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
    runsEnded: new Counter({
      name: 'svc_runs_ended_total',
      help: 'Runs ended, by exit reason.',
      labelNames: ['exit_reason'],
      registers,
    }),
  }
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
