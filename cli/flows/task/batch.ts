import type { Flow } from '../../context/context.ts'
import { usageError } from '../../errors/cli-error.ts'
import { readFileOrInput } from '../../machine/input.ts'
import { sendAndPrint } from '../../http/route-call.ts'
import { jsonFrom, localText } from '../../arguments/values.ts'

/** `task batch`: sends the tasks of a JSON file, which is a list of them or an object with `tasks` and `defaults`. */
export const taskBatch: Flow = async (context) => {
  const file = localText(context.values, 'file') ?? '-'
  const given = jsonFrom((await readFileOrInput(file, context)).toString('utf8'), file === '-' ? 'The input' : file)
  if (typeof given !== 'object' || given === null) throw usageError('The tasks are a list, or an object with `tasks`.')
  const body = Array.isArray(given) ? { tasks: given as unknown[] } : (given as Record<string, unknown>)
  return sendAndPrint(context, { body })
}
