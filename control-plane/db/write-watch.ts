import type { Knex } from 'knex'
import type { Service } from '../../shared/lib/services.ts'
import type { Log } from '../process/log.ts'
import type { Metrics } from '../process/metrics.ts'
import { databaseTroubleOf, isFull } from './dialect.ts'
import { writeStateOf, type WriteObserver } from './transaction.ts'

/**
 * Counts the transactions that are done again or given up and what fails since the database is away, slow or full, and logs the steps after
 * a commit that failed.
 */
export class WriteWatch implements Service {
  readonly #options: { root: Knex; metrics: Metrics; log: Log }
  readonly #observe: WriteObserver = (happened, cause) => {
    const { transactionsAgain, transactionsGivenUp } = this.#options.metrics
    ;(happened === 'again' ? transactionsAgain : transactionsGivenUp).inc({ cause })
  }
  readonly #stepFailed = (error: unknown) =>
    // The change is committed and its outbox row tells of it; only the shortcut failed.
    this.#options.log.error({ err: error }, 'after-commit step failed')
  readonly #failed = (error: unknown) => {
    const reason = isFull(error) ? 'disk_full' : databaseTroubleOf(error)
    // The others are of a single write, which is done again or refused.
    if (reason === 'disk_full' || reason === 'database_unavailable' || reason === 'query_timeout')
      this.#options.metrics.databaseFailures.inc({ reason })
  }

  constructor(options: { root: Knex; metrics: Metrics; log: Log }) {
    this.#options = options
  }

  start(): void {
    const { observers, onStepFailed, onFailed } = writeStateOf(this.#options.root)
    observers.add(this.#observe)
    onStepFailed.add(this.#stepFailed)
    onFailed.add(this.#failed)
  }

  stop(): void {
    const { observers, onStepFailed, onFailed } = writeStateOf(this.#options.root)
    observers.delete(this.#observe)
    onStepFailed.delete(this.#stepFailed)
    onFailed.delete(this.#failed)
  }
}
