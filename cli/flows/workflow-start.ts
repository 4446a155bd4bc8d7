import type { Flow } from '../context/context.ts'
import { usageError } from '../errors/cli-error.ts'
import { callOf, sendAndPrint } from '../http/route-call.ts'
import { textAt } from '../replies/fields.ts'
import { readWait } from './wait-flag.ts'

/** `workflow start`: each --input is a key and a text, which the server reads as the workflow declares it. With --wait it is watched to its end. */
export const workflowStart: Flow = async (context) => {
  const given = context.values.local['input']
  const pairs = (Array.isArray(given) ? given : [given]).filter((pair) => typeof pair === 'string')
  const input: Record<string, string> = {}
  for (const pair of pairs) {
    const at = pair.indexOf('=')
    if (at < 1) throw usageError(`--input takes key=value, not ${pair}.`)
    input[pair.slice(0, at)] = pair.slice(at + 1)
  }
  const body = pairs.length === 0 ? {} : { input }
  const waitMs = readWait(context.values)
  if (waitMs === null) return sendAndPrint(context, { body })
  const client = await context.connect()
  const { body: started } = await client.call(callOf(context, { body }))
  const { watchWorkflow } = await import('./workflow-watch.ts')
  return watchWorkflow(context, { client, id: textAt(started, 'id') ?? '', waitMs })
}
