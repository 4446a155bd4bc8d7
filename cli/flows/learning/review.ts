import { localText } from '../../arguments/values.ts'
import type { CommandContext, Flow } from '../../context/context.ts'
import { ApiFailure, CliError, usageError } from '../../errors/cli-error.ts'
import type { Client } from '../../calls/client.ts'
import { rowsOf } from '../../http/pages.ts'
import { pathSegment } from '../../http/path-segment.ts'
import { callOf, printReply } from '../../http/route-call.ts'
import { textAt } from '../../replies/fields.ts'

interface Row {
  learningId: string
  ok: boolean
  /** What it became. */
  status?: string
  /** Why nothing was done. */
  code?: string
  message?: string
}

/**
 * `learning accept`, `learning reject`: resolves the approval of one learning and prints it, or those of several and prints
 * what happened to each; exit status 1 when one of them was refused.
 */
export const learningReview: Flow = async (context) => {
  if (context.env.runId !== null)
    throw new CliError('agent_cannot_resolve_approval', 'Only a person reviews a learning, outside of any run.')
  const one = context.positionals['learning']?.[0] ?? null
  const ids = localText(context.values, 'ids')
  const before = localText(context.values, 'all-proposed-before')
  if ([one, ids, before].filter((given) => given !== null).length !== 1)
    throw usageError('Give one learning, --ids or --all-proposed-before.', `For example: ${context.command.example}`)
  if (one !== null) {
    const client = await context.connect()
    await printReply(context, await review(context, client, one))
    return 0
  }
  const wanted = ids === null ? null : listed(ids)
  const time = before === null ? 0 : timeOf(before)
  const client = await context.connect()
  const rows = await reviewAll(context, client, wanted ?? (await proposedBefore(client, time)))
  await printReply(context, { object: 'list', data: rows }, 'learning review')
  return rows.every(({ ok }) => ok) ? 0 : 1
}

/** Returns the learning as it is afterwards. */
async function review(context: CommandContext, client: Client, id: string): Promise<unknown> {
  const read = { method: 'GET', path: `/api/v1/learnings/${pathSegment(id)}` }
  const { body } = await client.call(read)
  await client.call({ body: {}, ...callOf(context, { params: { approvalId: textAt(body, 'approvalId') ?? '' } }) })
  return (await client.call(read)).body
}

/** One that is refused does not keep the others from being reviewed; without a server nothing more is tried. */
async function reviewAll(context: CommandContext, client: Client, ids: readonly string[]): Promise<Row[]> {
  const rows: Row[] = []
  let outage: CliError | null = null
  for (const learningId of ids) {
    try {
      if (outage !== null) throw outage
      rows.push({ learningId, ok: true, status: textAt(await review(context, client, learningId), 'status') ?? '' })
    } catch (error) {
      if (!(error instanceof ApiFailure || error instanceof CliError)) throw error
      if (error instanceof CliError) outage = error
      rows.push({ learningId, ok: false, code: error.code ?? 'refused', message: error.message })
    }
  }
  return rows
}

/** The oldest first. */
async function proposedBefore(client: Client, time: number): Promise<string[]> {
  const ids: string[] = []
  const call = { method: 'GET', path: '/api/v1/learnings', query: { status: 'proposed', limit: 100 } }
  for await (const row of rowsOf(client, call)) {
    if (Date.parse(textAt(row, 'createdAt') ?? '') < time) ids.unshift(textAt(row, 'id') ?? '')
  }
  return ids
}

function listed(text: string): string[] {
  const ids = text
    .split(',')
    .map((id) => id.trim())
    .filter((id) => id !== '')
  if (ids.length === 0) throw usageError('--ids names no learning.')
  return [...new Set(ids)]
}

function timeOf(text: string): number {
  const isTime = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2}))?$/.test(text)
  const time = isTime ? Date.parse(text) : NaN
  if (Number.isNaN(time))
    throw usageError(`\`${text}\` is no date.`, 'For example: 2026-03-01, or 2026-03-01T09:30:00Z.')
  return time
}
