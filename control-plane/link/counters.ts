import type { RunId } from '../../shared/lib/ids.ts'
import type { Log } from '../process/log.ts'
import type { Metrics } from '../process/metrics.ts'

/** Counts the intake of events in metrics, and logs a line where a person should look. */
export interface IngestCounters {
  stored(events: number, bytes: number): void
  refused(reason: string): void
  integrity(runId: RunId, message: string): void
}

export function ingestCounters(metrics: Metrics, log: Log): IngestCounters {
  return {
    stored: (events, bytes) => {
      metrics.eventsStored.inc(events)
      metrics.eventBytesStored.inc(bytes)
    },
    refused: (reason) => metrics.writesRefused.inc({ reason }),
    integrity: (runId, message) => {
      metrics.integrityErrors.inc()
      log.error({ runId }, message)
    },
  }
}
