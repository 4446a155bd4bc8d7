import type { CommandContext, Flow } from '../context/context.ts'
import { ApiFailure } from '../errors/cli-error.ts'
import type { Client } from '../calls/client.ts'
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
  const params = given.map((id) => withRun(context, { [name]: id }))
  const ids = params.map((each) => each[name]!)
  // What is asked for beside the rows, as by `--expand`, lists do not give.
  const isMoreAsked = Object.keys(values.query).length > 0
  const body = isMoreAsked
    ? { object: 'list', data: await oneByOne(context, client, params) }
    : (await client.call({ method: 'GET', path: command.batchPath, query: { ids } })).body
  await printReply(context, body)
  const slots = listAt(body, 'data')
  const missing = ids.filter((_, at) => slots[at] == null)
  if (missing.length > 0) out.message(`svc: not found: ${missing.join(', ')}`)
  return missing.length > 0 ? 1 : 0
}

async function oneByOne(
  context: CommandContext,
  client: Client,
  params: readonly Record<string, string>[],
): Promise<unknown[]> {
  const slots: unknown[] = []
  for (const each of params) {
    try {
      slots.push((await client.call(callOf(context, { params: each }))).body)
    } catch (error) {
      const isUnknown = error instanceof ApiFailure && (error.status === 404 || error.code === 'invalid_id_format')
      if (!isUnknown) throw error
      slots.push(null)
    }
  }
  return slots
}
