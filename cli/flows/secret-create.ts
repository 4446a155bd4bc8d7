import type { Flow } from '../context/context.ts'
import { sendAndPrint } from '../http/route-call.ts'
import { readSecret } from './secret-input.ts'

/** `secret create`: the value comes from standard input, never from the command line. */
export const secretCreate: Flow = async (context) =>
  sendAndPrint(context, { body: { value: await readSecret(context) } })
