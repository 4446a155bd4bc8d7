import { fail } from '../../../../shared/api/errors.ts'
import type { Db } from '../../../db/open.ts'
import type { Caller } from '../../../http/callers.ts'
import { lookUpAgent } from '../../agents/lookup.ts'
import { lookUpTask } from '../../tasks/lookup.ts'
import type { TaskRow } from '../../tasks/store.ts'
import { readInput, type InputProblem } from '../rules.ts'
import type { WorkflowInput } from '../store.ts'

/** The inputs that a run is started with, looked up for the caller, and its task. */
export interface GivenInputs {
  input: Record<string, unknown>
  task: TaskRow | null
}

/** The name under which an input also says which task the run is about. */
const taskKey = 'taskRef'

/** Fails with `validation_error` for what is missing, unknown, or of another kind than declared. */
export async function readInputs(
  db: Db,
  caller: Caller,
  {
    declared,
    given,
    taskId,
  }: { declared: readonly WorkflowInput[]; given: Readonly<Record<string, unknown>>; taskId: string | null },
): Promise<GivenInputs> {
  const problems: InputProblem[] = []
  const keys = new Set(declared.map(({ key }) => key))
  for (const key of Object.keys(given))
    if (!keys.has(key) && key !== taskKey) problems.push({ key, message: 'is no input of this workflow' })
  const task = await taskOf(db, caller, { taskId, reference: given[taskKey] })
  const input: Record<string, unknown> = {}
  for (const one of declared) {
    const sent = one.key === taskKey && task !== null ? task.id : Object.hasOwn(given, one.key) ? given[one.key] : null
    const read = readInput(one, sent)
    if ('message' in read) problems.push(read)
    else {
      const found = await lookedUp(db, caller, one, read.value)
      if (found === undefined) problems.push({ key: one.key, message: `names no ${one.kind} that you can see` })
      else input[one.key] = found
    }
  }
  if (problems.length > 0) refuse(problems)
  return { input, task }
}

function refuse(problems: readonly InputProblem[]): never {
  const fields = problems.map(({ key, message }) => ({ path: `input.${key}`, message }))
  const message = problems.map(({ key, message: why }) => `The input ${key} ${why}.`).join(' ')
  return fail('validation_error', { param: fields[0]!.path, message, details: { fields } })
}

/** undefined: there is no such thing. */
async function lookedUp(db: Db, caller: Caller, { kind }: WorkflowInput, value: unknown): Promise<unknown> {
  if (typeof value !== 'string') return value
  if (kind === 'task') return (await lookUpTask(db, caller, value))?.id
  if (kind !== 'agent') return value
  const agent = await lookUpAgent(db, caller, value)
  return agent === null || agent.deletedAt !== null ? undefined : agent.id
}

async function taskOf(
  db: Db,
  caller: Caller,
  { taskId, reference }: { taskId: string | null; reference: unknown },
): Promise<TaskRow | null> {
  const named = async (of: string, param: string) =>
    (await lookUpTask(db, caller, of)) ??
    fail('validation_error', { param, message: `${param} names no task that you can see.` })
  const byId = taskId === null ? null : await named(taskId, 'taskId')
  if (reference === undefined || reference === null || reference === '') return byId
  if (typeof reference !== 'string') return refuse([{ key: taskKey, message: 'must name a task' }])
  const byInput = await named(reference, `input.${taskKey}`)
  if (byId !== null && byId.id !== byInput.id)
    fail('validation_error', { param: 'taskId', message: '`taskId` and `input.taskRef` name different tasks.' })
  return byInput
}
