import type { Flow } from '../../context/context.ts'
import { usageError } from '../../errors/cli-error.ts'
import { sendAndPrint } from '../../http/route-call.ts'
import { localText } from '../../arguments/values.ts'

/** `task watch add` and `remove`: without a name the subject is the caller, a person or the agent of the run. */
export const taskWatch: Flow = async (context) => {
  const { values, env } = context
  const id = localText(values, 'id')
  const isPerson = id === null ? env.run === null : id.startsWith('usr_')
  const type = localText(values, 'type') ?? (isPerson ? 'user' : 'agent')
  if (type !== 'user' && type !== 'agent') throw usageError(`--type cannot be \`${type}\`. It takes user, agent.`)
  return sendAndPrint(context, { body: { type, id: id ?? 'me' } })
}
