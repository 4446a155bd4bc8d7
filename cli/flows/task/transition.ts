import type { Flow } from '../../context.ts'
import { ApiFailure } from '../../errors/cli-error.ts'
import { textAt } from '../../replies/fields.ts'
import { callOf, fillPath, printReply } from '../../http/route-call.ts'

/**
 * `task transition`. Within a run a task that has the status already is no failure: the start of the run moved it, and an
 * agent that says so itself has lost nothing. A comment of the call is not posted then, so with one the refusal stays.
 */
export const taskTransition: Flow = async (context) => {
  const { values, env, out } = context
  const client = await context.connect()
  const call = callOf(context)
  try {
    await printReply(context, (await client.call(call)).body)
    return 0
  } catch (error) {
    const isSame = error instanceof ApiFailure && error.code === 'invalid_task_transition'
    if (!isSame || env.runId === null || values.body?.['comment'] !== undefined) throw error
    const path = fillPath('/api/v1/tasks/{id}', values.params)
    const { body: task } = await client.call({ method: 'GET', path })
    const status = textAt(task, 'status')
    if (status === null || status !== values.body?.['status']) throw error
    await printReply(context, task)
    out.message(`svc: the task is ${status} already.`)
    return 0
  }
}
