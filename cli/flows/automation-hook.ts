import type { Flow } from '../context/context.ts'
import { usageError } from '../errors/cli-error.ts'
import { readFileOrInput } from '../machine/input.ts'
import { callOf, printReply } from '../http/route-call.ts'
import { localText } from '../arguments/values.ts'

/** `automation hook`: calls a webhook with a body of any kind, from --body or --body-file. */
export const automationHook: Flow = async (context) => {
  const text = localText(context.values, 'body')
  const file = localText(context.values, 'body-file')
  if (text !== null && file !== null) throw usageError('--body and --body-file cannot be given together.')
  const bytes = file === null ? Buffer.from(text ?? '') : await readFileOrInput(file, context)
  const client = await context.connect()
  const headers = { 'Content-Type': 'application/octet-stream' }
  await printReply(context, (await client.call({ ...callOf(context), bytes, headers })).body)
}
