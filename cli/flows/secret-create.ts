import type { Flow } from '../context.ts'
import { sendAndPrint } from '../http/route-call.ts'
import { readSecret } from '../machine/secret-input.ts'

/** `secret create`: the value comes from standard input, never from the command line. */
export const secretCreate: Flow = async (context) =>
  sendAndPrint(context, { body: { value: await readSecret(context) } })
