import { Readable } from 'node:stream'
import { localText } from '../arguments/values.ts'
import type { Flow } from '../context/context.ts'
import { CliError } from '../errors/cli-error.ts'
import { callOf, fillPath, printReply, sendAndPrint } from '../http/route-call.ts'
import { writeWhole } from '../machine/write-whole.ts'
import { listAt, textAt } from '../replies/fields.ts'

const revisionsPath = '/api/v1/wiki/pages/{id}/revisions'

/** `wiki get`: prints a page or one of its revisions, or writes its text to a file. */
export const wikiGet: Flow = async (context) => {
  const { values, resolvePath, out } = context
  const client = await context.connect()
  const revisionId = localText(values, 'revision')
  const { body: page } = await client.call(
    revisionId === null
      ? callOf(context)
      : { method: 'GET', path: fillPath(`${revisionsPath}/{revisionId}`, { ...values.params, revisionId }) },
  )
  const target = localText(values, 'out')
  if (target === null) {
    await printReply(context, page)
    return
  }
  const text = textAt(page, 'body')
  if (text === null)
    throw new CliError('not_published', 'This page was never published.', {
      remediation: 'Name one of the revisions that `svc wiki history` lists with --revision.',
    })
  if (target === '-') {
    out.exact(text)
    return
  }
  const place = resolvePath(target)
  await writeWhole(place, Readable.from([Buffer.from(text)]), true)
  await out.result({ path: place, sizeBytes: Buffer.byteLength(text) }, { look: 'wiki get' })
}

/** `wiki restore`: without a revision, the newest one that readers do not see. */
export const wikiRestore: Flow = async (context) => {
  const { values } = context
  if (values.params['revisionId'] !== undefined) return sendAndPrint(context)
  const client = await context.connect()
  const { body: page } = await client.call({ method: 'GET', path: fillPath('/api/v1/wiki/pages/{id}', values.params) })
  const { body: revisions } = await client.call({
    method: 'GET',
    path: fillPath(revisionsPath, values.params),
    query: { limit: 2 },
  })
  const current = textAt(page, 'currentRevisionId')
  const revisionId = listAt(revisions, 'data')
    .map((revision) => textAt(revision, 'id'))
    .find((id) => id !== null && id !== current)
  if (revisionId == null)
    throw new CliError('nothing_to_restore', 'This page has no other revision than the current one.')
  return sendAndPrint(context, { params: { revisionId } })
}
