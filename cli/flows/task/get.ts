import type { Flow } from '../../context/context.ts'
import { listAt } from '../../replies/fields.ts'
import { callOf, fillPath, printReply } from '../../http/route-call.ts'

/** `task get`: prints one task, with --history also its timeline as `history`. */
export const taskGet: Flow = async (context) => {
  const { values } = context
  const client = await context.connect()
  const { body: task } = await client.call(callOf(context))
  if (values.local['history'] !== true) {
    await printReply(context, task)
    return
  }
  const path = fillPath('/api/v1/tasks/{id}/history', values.params)
  const { body: history } = await client.call({ method: 'GET', path })
  await printReply(context, { ...(task as object), history: listAt(history, 'data') }, 'task get --history')
}
