import type { Flow } from '../../context/context.ts'
import { ApiFailure } from '../../errors/cli-error.ts'
import { textAt } from '../../replies/fields.ts'
import { callOf, fillPath, printReply } from '../../http/route-call.ts'

/**
 * `task transition`. Within a run it is no failure if the task has the status already: the start of the run moved it,
 * and the agent loses nothing by saying so itself. With a comment the refusal stays, because the comment would not be
 * posted.
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
