import { parentPort } from 'node:worker_threads'
import { work, type JobInput, type JobName } from './jobs.ts'
import type { WorkerMessage } from './pool.ts'

/** The worker of `pool.ts`: does one job after another, and is killed when a job takes too long. */
const port = parentPort
if (port === null) throw new Error('This program is a worker of svc-server.')
const tell = (message: Omit<WorkerMessage, 'usedMs'>) => {
  const { user, system } = process.threadCpuUsage()
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has none
  port.postMessage({ ...message, usedMs: (user + system) / 1_000 } satisfies WorkerMessage)
}
port.on('message', ({ name, input }: { name: JobName; input: JobInput<JobName> }) => {
  tell({ answer: { value: work(name, input) } })
})
tell({ answer: 'ready' })
