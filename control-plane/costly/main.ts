import { parentPort } from 'node:worker_threads'
import { work, type JobInput, type JobName } from './jobs.ts'

/** The worker of `pool.ts`: does one job after another, and is killed when one takes too long. */
const port = parentPort
if (port === null) throw new Error('This program is a worker of svc-server.')
port.on('message', ({ name, input }: { name: JobName; input: JobInput<JobName> }) => {
  port.postMessage({ value: work(name, input) })
})
port.postMessage('ready')
