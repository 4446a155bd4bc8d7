import type { Flow } from '../context.ts'
import { callOf, printReply } from '../http/route-call.ts'
import { readSecret } from '../machine/secret-input.ts'

/** `secret create`: the value comes from standard input, never from the command line. */
export const secretCreate: Flow = async (context) => {
  const value = await readSecret(context)
  const client = await context.connect()
  await printReply(context, (await client.call(callOf(context, { body: { value } }))).body)
  return 0
}
