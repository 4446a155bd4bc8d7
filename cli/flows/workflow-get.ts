import type { Flow } from '../context/context.ts'
import { ApiFailure } from '../errors/cli-error.ts'
import { callOf, printReply } from '../http/route-call.ts'
import { fieldAt, listAt, textAt } from '../replies/fields.ts'

/** `workflow get`: a workflow of the workspace, else the built-in one of this name. */
export const workflowGet: Flow = async (context) => {
  const client = await context.connect()
  try {
    await printReply(context, (await client.call(callOf(context))).body)
  } catch (error) {
    if (!(error instanceof ApiFailure) || error.status !== 404) throw error
    const name = context.values.params['name'] ?? ''
    const catalog = await client.send({ method: 'GET', path: '/api/v1/workflows/catalog' })
    const found = listAt(catalog.body, 'data').find((program) => textAt(program, 'name') === name)
    if (found === undefined) throw error
    const source = await client.call({ method: 'GET', path: '/api/v1/workflows/source', query: { workflow: name } })
    await printReply(context, { ...(found as object), source: fieldAt(source.body, 'source') })
  }
}
