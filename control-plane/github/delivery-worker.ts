import { claimDelivery, failDelivery, finishDelivery, listDueDeliveries, type DeliveryRow } from './delivery-store.ts'
import { follow, type EffectOptions } from './effects.ts'

/**
 * Processes the deliveries of GitHub one after another. A delivery is claimed for a while, and is processed again if
 * the process dies; its effects may be repeated (effects.ts). Several replicas may do this at once.
 */
export class DeliveryWorker {
  private readonly options: EffectOptions
  private readonly onFailed: (end: 'again' | 'given_up') => void
  private work: Promise<void> = Promise.resolve()
  private isAsked = false
  private isStopped = false

  constructor(options: EffectOptions, onFailed: (end: 'again' | 'given_up') => void = () => undefined) {
    this.options = options
    this.onFailed = onFailed
  }

  /** Called when a delivery was stored or may be due again: processes all due ones soon. */
  poke(): void {
    if (this.isAsked || this.isStopped) return
    this.isAsked = true
    this.work = this.work.then(async () => {
      this.isAsked = false
      await this.workOff()
    })
  }

  /** Resolves when all requested work is done. */
  async idle(): Promise<void> {
    await this.work
  }

  /** Resolves when the current delivery is done. */
  async stop(): Promise<void> {
    this.isStopped = true
    await this.work
  }

  private async workOff(): Promise<void> {
    const { root, world, log } = this.options
    try {
      for (;;) {
        const page = await listDueDeliveries(root, world.now(), pageSize)
        for (const delivery of page) {
          if (this.isStopped) return
          if (await claimDelivery(root, delivery, world.now() + claimMs)) await this.one(delivery)
        }
        if (page.length < pageSize) return
      }
    } catch (error) {
      log.error({ err: error }, 'deliveries of GitHub could not be worked off; the sweep tries again')
    }
  }

  private async one(delivery: DeliveryRow): Promise<void> {
    const { root, world, log } = this.options
    const { id, happening, attempts } = delivery
    try {
      await follow(delivery, this.options)
      await finishDelivery(root, id)
      log.info({ delivery: id, kind: happening.kind, repo: happening.repo }, 'delivery of GitHub done')
    } catch (error) {
      const isLast = attempts + 1 >= maxAttempts
      log.warn({ err: error, delivery: id, attempts: attempts + 1, isLast }, 'a delivery of GitHub failed')
      this.onFailed(isLast ? 'given_up' : 'again')
      const dueAt = isLast ? null : world.now() + Math.min(firstWaitMs * 2 ** attempts, longestWaitMs)
      await failDelivery(root, id, {
        trouble: error instanceof Error ? error.message.slice(0, 1_000) : 'unknown',
        dueAt,
      })
    }
  }
}

const pageSize = 50
/** Longer than all the requests to GitHub that one delivery needs. */
const claimMs = 10 * 60_000
/** The attempts span more than three hours: GitHub may be down, or its rate limit used up until the next hour. */
const maxAttempts = 12
const firstWaitMs = 10_000
const longestWaitMs = 60 * 60_000
