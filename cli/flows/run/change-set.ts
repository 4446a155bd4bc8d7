import type { Flow } from '../../context/context.ts'
import { textAt } from '../../replies/fields.ts'
import { callOf, printReply } from '../../http/route-call.ts'

/** `run change-set`: prints the changes of the run, or with --patch only the diff, as `git apply` reads it. */
export const runChangeSet: Flow = async (context) => {
  const { out, values } = context
  const client = await context.connect()
  const { body } = await client.call(callOf(context))
  if (values.local['patch'] !== true) await printReply(context, body)
  else {
    const diff = textAt(body, 'diff') ?? ''
    if (diff !== '') out.exact(diff)
    else out.message('svc: the run changed nothing.')
  }
}
