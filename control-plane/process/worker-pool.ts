import { Worker } from 'node:worker_threads'
import { ApiError } from '../../shared/api/errors.ts'
import { programUrl, type Program } from '../../shared/lib/program-file.ts'
import type { World } from '../../shared/lib/world.ts'
import type { Log } from './log.ts'
import { FairQueue } from './fair-queue.ts'

/**
 * Does work whose cost a caller decides in worker threads, so that the event loop always stays free.
 *
 *     waiting --a worker is free, its workspace has none at work--> at work --answer--> done
 *        |                                                             |-- too long, too much memory --> done, worker killed
 *        |                                                             +-- the machine has no time for it --> refused (429)
 *        +-- too many of this caller, or too long in the queue --> refused (429)
 *
 * A worker is made when there is work, is reused, and ends after a while without work. A killed worker keeps its place
 * until its thread is gone, so loops that cannot be interrupted never get more threads than `workers`.
 */
export interface PoolLimits {
  workers: number
  /** Processor time of one job; on a busy machine it may take longer. */
  jobMs: number
  /** The time one job may take after a ready worker got it. */
  longestMs: number
  /** Heap size of one worker. */
  heapMb: number
  /** Jobs of one caller that wait or are running. */
  perCaller: number
  /** Total size of the texts of all waiting jobs. */
  waitingBytes: number
  waitMs: number
  idleMs: number
  /** Workers that stay when there is no work, once one was needed. */
  reserve: number
}

/** The jobs of a program that is started as a worker: their names, what goes in and what comes out. */
export type Jobs = Readonly<Record<string, (input: never) => unknown>>
export type InputOf<All extends Jobs, Name extends keyof All> = Parameters<All[Name]>[0]
export type OutputOf<All extends Jobs, Name extends keyof All> = Awaited<ReturnType<All[Name]>>

export type JobAnswer<Value> = { kind: 'done'; value: Value } | { kind: 'gave_up'; why: 'time' | 'memory' | 'crash' }

/** A message of a worker; `usedMs` is the processor time of its thread so far. */
export interface WorkerMessage {
  answer: 'ready' | { value: unknown }
  usedMs: number
}

/** The owner of a job (`caller` as `callerKey` names it), and the memory it takes while it waits. */
export interface JobOwner {
  workspaceId: string
  caller: string
  bytes: number
}

interface Job {
  group: string
  member: string
  name: string
  input: unknown
  bytes: number
  stopWaiting: () => void
  settle: (answer: JobAnswer<never>) => void
  refuse: () => void
}

interface WorkerSlot {
  worker: Worker
  isReady: boolean
  /** Killed, but its thread still exists. */
  isLeaving: boolean
  job: Job | null
  /** Processor time of its thread before the job. */
  usedMs: number
  stopTimer: () => void
}

export interface PoolOptions {
  world: World
  log: Log
  limits: PoolLimits
  program: Program
  /** The name of what it does, for the log: `costly work`. */
  work: string
}

export class WorkerPool<All extends Jobs> {
  private readonly options: PoolOptions
  private readonly queue = new FairQueue<Job>()
  private readonly slots = new Set<WorkerSlot>()
  private waitingBytes = 0
  private isStopped = false

  constructor(options: PoolOptions) {
    this.options = options
  }

  /** Fails with `rate_limit_exceeded` when there is too much to do. */
  async run<Name extends keyof All & string>(
    name: Name,
    input: InputOf<All, Name>,
    { workspaceId: group, caller: member, bytes }: JobOwner,
  ): Promise<JobAnswer<OutputOf<All, Name>>> {
    const { limits, world } = this.options
    const atWork = [...this.slots].filter(({ job }) => job?.member === member).length
    const isFull = this.waitingBytes + bytes > limits.waitingBytes && this.waitingBytes > 0
    if (this.isStopped || isFull || this.queue.countOf(member) + atWork >= limits.perCaller) throw refusal()
    return new Promise<JobAnswer<OutputOf<All, Name>>>((resolve, reject) => {
      const job: Job = {
        group,
        member,
        name,
        input,
        bytes,
        stopWaiting: world.after(limits.waitMs, () => this.drop(job)),
        settle: resolve,
        refuse: () => reject(refusal()),
      }
      this.waitingBytes += bytes
      this.queue.add(job)
      this.next()
    })
  }

  get use(): { running: number; waiting: number } {
    const running = [...this.slots].filter(({ job }) => job !== null).length
    return { running, waiting: this.queue.all().length }
  }

  /** Ends the workers and refuses all waiting jobs. */
  async stop(): Promise<void> {
    this.isStopped = true
    for (const job of this.queue.all()) this.drop(job)
    await Promise.all(
      [...this.slots].map(async (slot) => {
        slot.stopTimer()
        slot.job?.refuse()
        slot.job = null
        await slot.worker.terminate()
      }),
    )
  }

  private drop(job: Job): void {
    if (!this.queue.remove(job)) return
    this.leave(job)
    job.refuse()
  }

  private leave(job: Job): void {
    job.stopWaiting()
    this.waitingBytes -= job.bytes
  }

  /** Hands work to free workers, and makes a worker when there are too few. */
  private next(): void {
    const busy = new Set([...this.slots].map(({ job }) => job?.group))
    const mayServe = ({ group }: Job) => !busy.has(group)
    for (const slot of this.slots) {
      if (!slot.isReady || slot.isLeaving || slot.job !== null) continue
      const job = this.queue.take(mayServe)
      if (job === null) return
      this.leave(job)
      busy.add(job.group)
      this.assign(slot, job)
    }
    const coming = [...this.slots].filter((slot) => !slot.isReady && !slot.isLeaving).length
    const groups = new Set(
      this.queue
        .all()
        .filter(mayServe)
        .map(({ group }) => group),
    ).size
    if (groups > coming && this.slots.size < this.options.limits.workers && !this.isStopped) {
      this.startWorker()
      this.next()
    }
  }

  private assign(slot: WorkerSlot, job: Job): void {
    const { world, limits } = this.options
    slot.job = job
    slot.stopTimer()
    const stopLook = this.checkLater(limits.jobMs, slot, job)
    const stopEnd = world.after(limits.longestMs, () => this.giveUp(slot, job, { spentMs: null }))
    slot.stopTimer = () => {
      stopLook()
      stopEnd()
    }
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has none
    slot.worker.postMessage({ name: job.name, input: job.input })
  }

  /**
   * Checks after `ms` whether the job has used up its processor time. A thread that does not answer is ended at
   * `longestMs`.
   */
  private checkLater(ms: number, slot: WorkerSlot, job: Job): () => void {
    const { world, limits } = this.options
    let stop = world.after(ms, () => {
      slot.worker.cpuUsage().then(
        ({ user, system }) => {
          if (slot.job !== job) return
          const spentMs = (user + system) / 1_000 - slot.usedMs
          if (spentMs >= limits.jobMs) this.giveUp(slot, job, { spentMs })
          else stop = this.checkLater(Math.max(limits.jobMs - spentMs, 50), slot, job)
        },
        // The thread has ended; its `exit` event settles the job.
        () => undefined,
      )
    })
    return () => stop()
  }

  private giveUp(slot: WorkerSlot, job: Job, { spentMs }: { spentMs: number | null }): void {
    const { name, group: workspace, member: caller } = job
    this.options.log.warn({ job: name, workspace, caller, spentMs }, `${this.options.work} took too long`)
    if (spentMs === null) job.refuse()
    this.dismiss(slot, 'time')
  }

  private startWorker(): void {
    const { limits, log } = this.options
    const worker = new Worker(programUrl(this.options.program), {
      resourceLimits: { maxOldGenerationSizeMb: limits.heapMb, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 },
      env: workerEnvironment(),
      execArgv: ['--disable-warning=ExperimentalWarning'],
    })
    worker.unref()
    const slot: WorkerSlot = {
      worker,
      isReady: false,
      isLeaving: false,
      job: null,
      usedMs: 0,
      stopTimer: () => undefined,
    }
    this.slots.add(slot)
    worker.on('message', ({ answer, usedMs }: WorkerMessage) => {
      slot.stopTimer()
      slot.usedMs = usedMs
      if (answer === 'ready') slot.isReady = true
      else if (!slot.isLeaving) {
        slot.job?.settle({ kind: 'done', value: answer.value as never })
        slot.job = null
      }
      slot.stopTimer = this.dismissLater(slot)
      this.next()
    })
    worker.on('error', (error: NodeJS.ErrnoException) => {
      log.warn(
        { err: error, job: slot.job?.name, caller: slot.job?.member },
        `a worker for ${this.options.work} failed`,
      )
      this.dismiss(slot, error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? 'memory' : 'crash')
    })
    worker.on('exit', () => {
      this.dismiss(slot, 'crash')
      this.slots.delete(slot)
      // Waiting jobs are refused when their time is over, if no worker can start.
      if (!slot.isReady || this.isStopped) return
      this.next()
      if (this.slots.size < limits.reserve) this.startWorker()
    })
  }

  /** Ends the worker when it has had no work for long, unless it is one of the reserve. */
  private dismissLater(slot: WorkerSlot): () => void {
    const { world, limits } = this.options
    return world.after(limits.idleMs, () => {
      if (this.slots.size > limits.reserve) this.dismiss(slot, 'crash')
    })
  }

  private dismiss(slot: WorkerSlot, why: 'time' | 'memory' | 'crash'): void {
    slot.stopTimer()
    slot.job?.settle({ kind: 'gave_up', why })
    slot.job = null
    if (slot.isLeaving) return
    slot.isLeaving = true
    void slot.worker.terminate()
  }
}

/**
 * The worker gets neither the server's environment, which holds its secrets, nor its flags; it is told only where Node keeps
 * what it compiled, which halves a start from the sources.
 */
function workerEnvironment(): Record<string, string> {
  const { NODE_COMPILE_CACHE } = process.env
  return NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE }
}

const refusal = () =>
  new ApiError('rate_limit_exceeded', {
    message: 'Too much is being checked for this caller. Try again.',
    details: { retryAfter: 1 },
    headers: { 'Retry-After': '1' },
  })
