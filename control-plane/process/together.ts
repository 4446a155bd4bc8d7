export interface TogetherOptions<Job, Answer> {
  /** The most jobs that are done at once. */
  most: number
  /** Answers in the order of the jobs. */
  all(jobs: readonly [Job, ...Job[]], key: string): Promise<readonly Answer[]>
  /** Told when jobs failed together; each is then done by itself. */
  onSplit(error: unknown, count: number): void
}

interface Waiting<Job, Answer> {
  job: Job
  resolve(answer: Answer): void
  reject(error: unknown): void
}

/**
 * Does jobs of one kind together: those of a key that come in one turn of the event loop, and those that come while others of the key are
 * being done. A job by itself waits for nothing but the end of the turn. No key waits for another.
 *
 *     (no jobs) --add--> gathered --turn is over--> at work --jobs came meanwhile--> at work
 *                                                      |----none came----> (no jobs)
 *                                                      `--failed together--> each by itself, beside what comes next
 */
export class Together<Job, Answer> {
  private readonly options: TogetherOptions<Job, Answer>
  /** The jobs of each key that are not begun; a key at work stays here. */
  private readonly waiting = new Map<string, Waiting<Job, Answer>[]>()

  constructor(options: TogetherOptions<Job, Answer>) {
    this.options = options
  }

  /** Resolves with the answer to this job, and fails only as the job does by itself. */
  add(key: string, job: Job): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const waiting = { job, resolve, reject }
      const others = this.waiting.get(key)
      if (others !== undefined) return void others.push(waiting)
      this.waiting.set(key, [waiting])
      setImmediate(() => void this.work(key))
    })
  }

  private async work(key: string): Promise<void> {
    for (let jobs = this.take(key); jobs.length > 0; jobs = this.take(key)) {
      const failure = await this.doAll(key, jobs)
      if (failure === null) continue
      const [only, ...others] = jobs
      if (others.length === 0) {
        only?.reject(failure.error)
        continue
      }
      this.options.onSplit(failure.error, jobs.length)
      // One of them may have to wait, and holds up none of those that came since.
      for (const each of jobs) void this.doAlone(key, each)
    }
    this.waiting.delete(key)
  }

  private take(key: string): Waiting<Job, Answer>[] {
    return this.waiting.get(key)?.splice(0, this.options.most) ?? []
  }

  private async doAlone(key: string, each: Waiting<Job, Answer>): Promise<void> {
    const failure = await this.doAll(key, [each])
    if (failure !== null) each.reject(failure.error)
  }

  private async doAll(key: string, jobs: readonly Waiting<Job, Answer>[]): Promise<{ error: unknown } | null> {
    try {
      const [first, ...others] = jobs.map(({ job }) => job)
      const answers = await this.options.all([first!, ...others], key)
      for (const [at, each] of jobs.entries()) each.resolve(answers[at]!)
      return null
    } catch (error) {
      return { error }
    }
  }
}
