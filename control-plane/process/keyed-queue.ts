import type { Log } from './log.ts'

/**
 * Runs the jobs of a service in a queue for each key: jobs of one key run one after another in order of arrival, and no key
 * waits for another. Writes to a workspace run under the id of that workspace. They may wait there for
 * the lock of the workspace (db/advisory-locks.ts) as long as a write may take, while other keys go on.
 *
 *   (no queue) --add--> ready --a slot is free--> at work --a job is left--> ready
 *                                                    `-----none is left-----> (no queue)
 *
 * Ready keys take turns, one job each, on a bounded number of slots. A key keeps its slot while it waits for the
 * lock of its workspace, but holds no connection. So there are more slots than connections, and whoever stalls as many
 * workspaces as there are slots holds all the connections already.
 */
type Job = () => Promise<void>

const slots = 32

export class KeyedQueue {
  private readonly log: Log
  private readonly failed: string
  private readonly onFailed: () => void
  /** The waiting jobs of each key; a key whose last job is at work stays here, empty. */
  private readonly waiting = new Map<string, Map<unknown, Job>>()
  private readonly ready = new Set<string>()
  private atWork = 0
  private whenIdle: (() => void)[] = []
  private stopped = true

  /** `failed`: the log message for a failed job, of which `onFailed` is told as well. */
  constructor(log: Log, failed: string, onFailed: () => void = () => undefined) {
    this.log = log
    this.failed = failed
    this.onFailed = onFailed
  }

  get isStopped(): boolean {
    return this.stopped
  }

  start(): void {
    this.stopped = false
  }

  /** Drops jobs that have not begun; resolves when no job is at work any more. */
  async stop(): Promise<void> {
    this.stopped = true
    await this.idle()
  }

  /** Resolves when all added jobs are done, including those that jobs add. */
  idle(): Promise<void> {
    return this.waiting.size === 0 ? Promise.resolve() : new Promise((resolve) => this.whenIdle.push(resolve))
  }

  /** Adds a job under a key, unless one with this name waits there already. A failed job is logged. */
  add(key: string, job: Job, name: unknown = job): void {
    const jobs = this.waiting.get(key)
    if (jobs === undefined) {
      this.waiting.set(key, new Map([[name, job]]))
      this.ready.add(key)
      this.fillSlots()
      return
    }
    if (!jobs.has(name)) jobs.set(name, job)
  }

  private fillSlots(): void {
    for (const key of this.ready) {
      if (this.atWork >= slots) return
      this.ready.delete(key)
      this.atWork++
      void this.workOn(key)
    }
  }

  private async workOn(key: string): Promise<void> {
    // Returns to the caller first, which may add more jobs at once.
    await Promise.resolve()
    const jobs = this.waiting.get(key) ?? new Map<unknown, Job>()
    for (const [name, job] of jobs) {
      jobs.delete(name)
      await this.run(job, { line: key, ...(typeof name === 'string' && { key: name }) })
      break
    }
    this.atWork--
    if (jobs.size > 0) this.ready.add(key)
    else this.waiting.delete(key)
    this.fillSlots()
    if (this.waiting.size === 0) for (const resolve of this.whenIdle.splice(0)) resolve()
  }

  /** `logged`: the fields of the log line, by the names that operators search for. */
  private async run(job: Job, logged: { line: string; key?: string }): Promise<void> {
    if (this.stopped) return
    try {
      await job()
    } catch (error) {
      this.onFailed()
      this.log.error({ err: error, ...logged }, this.failed)
    }
  }
}
