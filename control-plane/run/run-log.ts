import type { Knex } from 'knex'
import type { Service } from '../../shared/lib/services.ts'
import type { Log } from '../process/log.ts'
import type { Metrics } from '../process/metrics.ts'
import { observePhases, type PhaseChange } from './phase-changes.ts'

/**
 * Writes a line of the log for each run that came into another phase, and counts these changes, on the replica that committed them. So all
 * replicas together have one line for each change, however it came about.
 */
export class RunLog implements Service {
  readonly #options: { root: Knex; log: Log; metrics: Metrics }
  #end: (() => void) | null = null

  constructor(options: { root: Knex; log: Log; metrics: Metrics }) {
    this.#options = options
  }

  start(): void {
    this.#end ??= observePhases(this.#options.root, (change) => this.#note(change))
  }

  stop(): void {
    this.#end?.()
    this.#end = null
  }

  #note(change: PhaseChange): void {
    const { log, metrics } = this.#options
    log.info(fieldsOf(change), messageOf(change))
    metrics.runChanges.inc({ event: change.event })
    if (change.to === 'ended') metrics.runsEnded.inc({ exit_reason: change.exitReason ?? 'none' })
    if (change.waitedMs !== null) metrics.runWaitSeconds.observe(Math.max(0, change.waitedMs) / 1_000)
  }
}

/** A field without a value is left out. `agentId` and `workspaceId` are called as in the API and in other lines. */
function fieldsOf({ runId, workspaceId, agentRef, event, from, to, fence, ...change }: PhaseChange): object {
  const { device, exitReason, reason, gate, waitedMs } = change
  return {
    runId,
    workspaceId,
    agentId: agentRef,
    event,
    from,
    to,
    fence,
    ...(device !== null && { device }),
    ...(exitReason !== null && { exitReason }),
    ...(reason !== null && { reason }),
    ...(gate !== null && { gate }),
    ...(waitedMs !== null && { waitedMs }),
  }
}

function messageOf({ event, to }: PhaseChange): string {
  if (event === 'made') return 'run made'
  if (event === 'offer_withdrawn') return 'run offer taken back'
  return messages[to]
}

const messages = {
  waiting: 'run waits',
  offered: 'run offered',
  running: 'run claimed',
  stopping: 'run told to end',
  ended: 'run ended',
} as const
