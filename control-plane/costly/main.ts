import { serveJobs } from '../process/worker-jobs.ts'
import { work, type JobInput, type JobName } from './jobs.ts'

/** The worker of `pool.ts`. */
serveJobs((name, input) => work(name as JobName, input as JobInput<JobName>))
