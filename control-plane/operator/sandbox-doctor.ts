import { join } from 'node:path'
import { dataFiles } from '../../shared/lib/places.ts'
import { realWorld } from '../../shared/lib/world.ts'
import type { ServerConfig } from '../config.ts'
import { describeChecks, diagnoseSandboxes } from '../sandbox/doctor.ts'
import { createEngine } from '../sandbox/engines.ts'
import { OperatorError } from './people.ts'

/** Prints a line for each check. Fails where one failed. */
export async function sandboxDoctor(config: ServerConfig): Promise<void> {
  const { sandbox, dataDir } = config
  if (sandbox === null)
    throw new OperatorError('Cloud runs are off: SVC_SANDBOX is none. docs/sandbox.md says how to turn them on.')
  const engine = createEngine(sandbox.engine)
  const folder = join(dataDir, realWorld.id(`${dataFiles.sandboxes}-trial-`))
  const checks = await diagnoseSandboxes({ ...sandbox, engine, folder, world: realWorld })
  process.stdout.write(describeChecks(checks))
  const failed = checks.filter(({ isGood }) => !isGood).length
  if (failed > 0) throw new OperatorError(`${failed} of ${checks.length} checks failed.`)
}
