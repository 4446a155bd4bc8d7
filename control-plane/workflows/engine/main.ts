import { readFileSync } from 'node:fs'
import { assetUrl } from '../../../shared/lib/program-file.ts'
import { serveJobs } from '../../process/worker-jobs.ts'
import { compileProgram } from './compile.ts'
import { replay } from './replay.ts'
import { InstanceSupply } from './supply.ts'
import type { EngineJobs } from './words.ts'

/** The worker of `pool.ts`. The engine's code is compiled once, and each job has a fresh instance. */
const supply = new InstanceSupply(new WebAssembly.Module(readFileSync(assetUrl('quickjs.wasm'))))
const jobs: EngineJobs = {
  compile: (source) => supply.with((instance) => compileProgram(instance, source)),
  replay: (input) => supply.with((instance) => replay(instance, input)),
}
serveJobs((name, input) => jobs[name as keyof EngineJobs](input as never))
