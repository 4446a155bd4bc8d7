import type { Knex } from 'knex'
import type { Service } from '../../shared/lib/services.ts'
import type { Log } from '../process/log.ts'
import type { Metrics } from '../process/metrics.ts'
import { writeStateOf, type WriteObserver } from './transaction.ts'

/** Counts the transactions that are done again or given up, and logs the steps after a commit that failed. */
export class WriteWatch implements Service {
  readonly #options: { root: Knex; metrics: Metrics; log: Log }
  readonly #observe: WriteObserver = (happened, cause) => {
    const { transactionsAgain, transactionsGivenUp } = this.#options.metrics
    ;(happened === 'again' ? transactionsAgain : transactionsGivenUp).inc({ cause })
  }
  readonly #stepFailed = (error: unknown) =>
    // The change is committed and its outbox row tells of it; only the shortcut failed.
    this.#options.log.error({ err: error }, 'after-commit step failed')

  constructor(options: { root: Knex; metrics: Metrics; log: Log }) {
    this.#options = options
  }

  start(): void {
    const { observers, onStepFailed } = writeStateOf(this.#options.root)
    observers.add(this.#observe)
    onStepFailed.add(this.#stepFailed)
  }

  stop(): void {
    const { observers, onStepFailed } = writeStateOf(this.#options.root)
    observers.delete(this.#observe)
    onStepFailed.delete(this.#stepFailed)
  }
}
