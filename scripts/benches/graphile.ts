import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

// graphile-worker, a job queue on PostgreSQL, as the peer of dispatch. It is fetched by name into the project's cache when it
// is first asked for, and is no dependency.

const version = '0.18.0'

/** As far as it is used here. */
interface Library {
  run(options: object): Promise<{ stop(): Promise<void> }>
  makeWorkerUtils(options: object): Promise<{
    migrate(): Promise<void>
    addJob(task: string, payload: object): Promise<unknown>
    addJobs(specs: readonly { identifier: string; payload: object }[]): Promise<unknown>
    release(): Promise<void>
  }>
}

export interface Queue {
  /** Milliseconds from asking for a job to its start, one job after another. */
  latencies(count: number): Promise<number[]>
  /** Milliseconds until the last of the jobs that wait is started, from the start of the worker on; claimed in batches. */
  burst(count: number): Promise<number>
  /** Jobs that a worker as it comes claims and finishes in a second. */
  perSecond(count: number): Promise<number>
  end(): Promise<void>
}

/** null where the package cannot be had. */
export async function openGraphile(databaseUrl: string, say: (text: string) => void): Promise<Queue | null> {
  const library = await load(say)
  if (library === null) return null
  const logger = { error() {}, warn() {}, info() {}, debug() {}, scope: () => logger }
  const quiet = { connectionString: databaseUrl, logger, noHandleSignals: true }
  const utils = await library.makeWorkerUtils(quiet)
  await utils.migrate()
  let started: () => unknown = () => undefined
  const taskList = {
    job() {
      started()
    },
  }
  const untilStarted = (count: number) =>
    new Promise<number>((done) => {
      let left = count
      started = () => --left === 0 && done(performance.now())
    })
  const enqueue = (count: number) =>
    utils.addJobs(Array.from({ length: count }, () => ({ identifier: 'job', payload: {} })))
  const drained = async (count: number, settings: object) => {
    await enqueue(count)
    const last = untilStarted(count)
    const start = performance.now()
    const worker = await library.run({ ...quiet, taskList, ...settings })
    const ms = (await last) - start
    // It stops once all are finished, not only started.
    await worker.stop()
    return { ms, finishedMs: performance.now() - start }
  }
  return {
    async latencies(count) {
      const worker = await library.run({ ...quiet, taskList })
      const samples: number[] = []
      for (let i = 0; i < count; i++) {
        const start = performance.now()
        const at = untilStarted(1)
        await utils.addJob('job', {})
        samples.push((await at) - start)
      }
      await worker.stop()
      return samples
    },
    burst: async (count) =>
      (
        await drained(count, {
          preset: {
            worker: { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0, concurrentJobs: 24 },
          },
        })
      ).ms,
    perSecond: async (count) => (count * 1000) / (await drained(count, {})).finishedMs,
    end: () => utils.release(),
  }
}

async function load(say: (text: string) => void): Promise<Library | null> {
  const folder = join(resolve(import.meta.dirname, '../..'), '.cache/graphile-worker', version)
  const manifest = join(folder, 'package.json')
  const installed = join(folder, 'node_modules/graphile-worker/package.json')
  try {
    if (!existsSync(installed)) {
      mkdirSync(folder, { recursive: true })
      writeFileSync(manifest, '{"private":true}\n')
      const args = ['install', '--no-audit', '--no-fund', '--loglevel=error', `graphile-worker@${version}`]
      await promisify(execFile)('npm', args, { cwd: folder })
    }
    return createRequire(manifest)('graphile-worker') as Library
  } catch (error) {
    say(`NOT COMPARED with graphile-worker, which cannot be had: ${String(error)}`)
    return null
  }
}
