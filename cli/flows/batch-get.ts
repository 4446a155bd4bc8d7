import type { Flow } from '../context.ts'
import { listAt } from '../replies/fields.ts'
import { callOf, printReply, withRun } from '../http/route-call.ts'

/** `run get`, `agent get`: reads one by its own route, or several by the list's `ids`, with null for unknown ids. */
export const batchGet: Flow = async (context) => {
  const { command, values, out } = context
  const positional = command.positionals[0]!
  const given = context.positionals[positional.name] ?? []
  const client = await context.connect()
  if (given.length < 2 || command.batchPath === undefined) {
    await printReply(context, (await client.call(callOf(context))).body)
    return 0
  }
  const name = positional.target!.split('.')[1]!
  const ids = given.map((id) => withRun(context, { [name]: id })[name]!)
  const { body } = await client.call({ method: 'GET', path: command.batchPath, query: { ...values.query, ids } })
  await printReply(context, body)
  const slots = listAt(body, 'data')
  const missing = ids.filter((_, at) => slots[at] == null)
  if (missing.length > 0) out.message(`svc: not found: ${missing.join(', ')}`)
  return missing.length > 0 ? 1 : 0
}
