import { fail } from '../../../../shared/api/errors.ts'
import { callerKey, type Caller } from '../../../http/callers.ts'
import type { JobAnswer } from '../../../process/worker-pool.ts'
import { programFlaw, type ProgramFlaw } from '../../../workflows/program/flaw.ts'
import type { CheckedProgram } from '../../../workflows/program/check.ts'
import type { ResourceDependencies } from '../../dependencies.ts'

/**
 * Returns what the program says about itself, once it is checked: in a worker, and then by a compile in the engine where this
 * server has one. Fails with the code of the first flaw, and its place.
 */
export async function checkedProgram(
  source: string,
  { caller, costly, engine }: { caller: Caller } & Pick<ResourceDependencies, 'costly' | 'engine'>,
): Promise<CheckedProgram> {
  const owner = { workspaceId: caller.workspaceId, caller: callerKey(caller), bytes: source.length }
  const checked = await costly.run('workflows.check', source, owner)
  if (checked.kind === 'gave_up') return refuse(tooCostly(checked))
  if ('flaw' in checked.value) return refuse(checked.value.flaw)
  const compiled = await engine?.run('compile', source, owner)
  if (compiled?.kind === 'gave_up') return refuse(tooCostly(compiled))
  const flaw = compiled?.value ?? null
  return flaw === null ? checked.value : refuse(flaw)
}

const tooCostly = ({ why }: JobAnswer<never> & { kind: 'gave_up' }): ProgramFlaw =>
  programFlaw('workflow_syntax', `The program takes too much ${why === 'memory' ? 'memory' : 'time'} to be read.`)

function refuse({ code, message, line, column }: ProgramFlaw): never {
  return fail(code, { param: 'source', message, details: { line, column } })
}
