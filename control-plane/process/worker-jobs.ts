import { parentPort } from 'node:worker_threads'
import type { WorkerMessage } from './worker-pool.ts'

/** The other end of `worker-pool.ts`: does one job after another, and is killed when a job takes too long. */
export function serveJobs(work: (name: string, input: unknown) => unknown): void {
  const port = parentPort
  if (port === null) throw new Error('This program is a worker of svc-server.')
  const tell = (message: Omit<WorkerMessage, 'usedMs'>) => {
    const { user, system } = process.threadCpuUsage()
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has none
    port.postMessage({ ...message, usedMs: (user + system) / 1_000 } satisfies WorkerMessage)
  }
  port.on('message', ({ name, input }: { name: string; input: unknown }) => {
    const value = work(name, input)
    if (!(value instanceof Promise)) return tell({ answer: { value } })
    // A job that fails ends the worker, as one that throws does.
    void value.then((later: unknown) => tell({ answer: { value: later } }))
  })
  tell({ answer: 'ready' })
}
