import { localText, localTexts } from '../../arguments/values.ts'
import type { Flow } from '../../context/context.ts'
import { usageError } from '../../errors/cli-error.ts'
import { callOf, printReply, sendAndPrint } from '../../http/route-call.ts'
import { fieldAt, listAt } from '../../replies/fields.ts'

/** `file list`: --task and --project are short for an entity. */
export const fileList: Flow = async (context) => {
  const { values } = context
  const short = (['task', 'project'] as const).flatMap((entityType) => {
    const entityId = localText(values, entityType)
    return entityId === null ? [] : [{ entityType, entityId }]
  })
  const isNamed = values.query['entityType'] !== undefined || values.query['entityId'] !== undefined
  if (short.length + (isNamed ? 1 : 0) > 1) throw usageError('Give one of --task, --project and --entity-type.')
  return sendAndPrint(context, { query: { ...short[0] } })
}

/** `file bulk-delete`, `file bulk-relate`: one call for several files; exit status 1 when one of them was refused. */
export const fileBulk: Flow = async (context) => {
  const client = await context.connect()
  const fileIds = localTexts(context.values, 'file')
  const { body } = await client.call(callOf(context, { body: { fileIds } }))
  await printReply(context, body)
  return listAt(body, 'results').every((row) => fieldAt(row, 'ok') === true) ? 0 : 1
}
