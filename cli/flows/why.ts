import type { Flow } from '../context/context.ts'
import { callOf, fillPath, printReply } from '../http/route-call.ts'

/** `why`: of a run by its id or `current`, of a task by its id or key, such as MAI-12. */
export const why: Flow = async (context) => {
  const reference = context.values.params['runId'] ?? ''
  const client = await context.connect()
  if (!isTask.test(reference)) return printReply(context, (await client.call(callOf(context))).body)
  const path = fillPath('/api/v1/tasks/{id}/why', { id: reference })
  await printReply(context, (await client.call({ method: 'GET', path })).body, 'TaskWhy')
}

const isTask = /^tsk_|^[A-Za-z][A-Za-z0-9]*-\d+$/
