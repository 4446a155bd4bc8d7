import type { Flow } from '../../context.ts'
import { usageError } from '../../errors/cli-error.ts'
import { callOf, printReply } from '../../http/route-call.ts'
import { localText } from '../../arguments/values.ts'

/** `task watch add` and `remove`: whoever is named; left out, it is who calls: a person, or the agent of the run. */
export const taskWatch: Flow = async (context) => {
  const { values, env } = context
  const id = localText(values, 'id')
  const isPerson = id === null ? env.run === null : id.startsWith('usr_')
  const type = localText(values, 'type') ?? (isPerson ? 'user' : 'agent')
  if (type !== 'user' && type !== 'agent') throw usageError(`--type cannot be \`${type}\`. It takes user, agent.`)
  const client = await context.connect()
  await printReply(context, (await client.call(callOf(context, { body: { type, id: id ?? 'me' } }))).body)
  return 0
}
