import type { Flow } from '../context/context.ts'
import { usageError } from '../errors/cli-error.ts'
import { sendAndPrint } from '../http/route-call.ts'

/** `workflow start`: each --input is a key and a text, which the server reads as the workflow declares it. */
export const workflowStart: Flow = async (context) => {
  const given = context.values.local['input']
  const pairs = (Array.isArray(given) ? given : [given]).filter((pair) => typeof pair === 'string')
  const input: Record<string, string> = {}
  for (const pair of pairs) {
    const at = pair.indexOf('=')
    if (at < 1) throw usageError(`--input takes key=value, not ${pair}.`)
    input[pair.slice(0, at)] = pair.slice(at + 1)
  }
  return sendAndPrint(context, { body: pairs.length === 0 ? {} : { input } })
}
