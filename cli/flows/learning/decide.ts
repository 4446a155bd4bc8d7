import { localText } from '../../arguments/values.ts'
import type { CommandContext, Flow } from '../../context.ts'
import { ApiFailure, CliError, usageError } from '../../errors/cli-error.ts'
import { exitStatus } from '../../errors/exit-codes.ts'
import type { Client } from '../../http/client.ts'
import { pathSegment } from '../../http/path-segment.ts'
import { listAt, textAt } from '../../replies/fields.ts'

type Decision = 'approve' | 'reject'

/** `learning accept`, `learning reject`: resolves the approvals of one learning, of several, or of all of before a time. */
export const learningAccept: Flow = (context) => decide(context, 'approve')
export const learningReject: Flow = (context) => decide(context, 'reject')

/** What became of one of several. */
interface Outcome {
  id: string
  ok: boolean
  status: string | null
  error: { code: string | null; message: string } | null
}

async function decide(context: CommandContext, decision: Decision): Promise<number> {
  const { values, positionals, env, out } = context
  if (env.run !== null)
    throw new CliError('agent_cannot_resolve_approval', 'Only a person decides about a learning, and this is a run.', {
      exit: 'refused',
    })
  const one = positionals['learning']?.[0] ?? null
  const several = localText(values, 'ids')
  const before = localText(values, 'all-proposed-before')
  if ([one, several, before].filter((given) => given !== null).length !== 1)
    throw usageError('Give one learning, --ids, or --all-proposed-before.')
  const until = before === null ? null : timeOf(before)
  const client = await context.connect()
  const body = values.body ?? {}
  if (one !== null) {
    await resolve(client, one, { decision, body })
    await out.result((await client.call({ method: 'GET', path: pathOf(one) })).body)
    return exitStatus('ok')
  }
  const ids = several === null ? await proposedBefore(client, until!) : idsOf(several)
  const outcomes: Outcome[] = []
  for (const id of ids) outcomes.push(await outcomeOf(client, id, { decision, body }))
  await out.result({ object: 'list', data: outcomes }, ['id', 'ok', 'status', 'error'])
  return exitStatus(outcomes.every(({ ok }) => ok) ? 'ok' : 'refused')
}

function timeOf(text: string): number {
  const at = /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(at)) throw usageError(`--all-proposed-before takes a date such as 2026-03-01, not \`${text}\`.`)
  return at
}

function idsOf(text: string): string[] {
  const ids = text
    .split(',')
    .map((id) => id.trim())
    .filter((id) => id !== '')
  if (ids.length === 0) throw usageError('--ids takes `lrn_` ids, with commas between them.')
  return [...new Set(ids)]
}

const pathOf = (id: string) => `/api/v1/learnings/${pathSegment(id)}`

async function resolve(
  client: Client,
  id: string,
  { decision, body }: { decision: Decision; body: Record<string, unknown> },
): Promise<void> {
  const { body: learning } = await client.call({ method: 'GET', path: pathOf(id) })
  const approval = pathSegment(textAt(learning, 'approvalId') ?? '')
  await client.call({ method: 'POST', path: `/api/v1/approvals/${approval}/${decision}`, body })
}

/** A refusal is about this one only; a server that is out of reach ends the command. */
async function outcomeOf(client: Client, id: string, how: Parameters<typeof resolve>[2]): Promise<Outcome> {
  try {
    await resolve(client, id, how)
    return { id, ok: true, status: how.decision === 'approve' ? 'accepted' : 'rejected', error: null }
  } catch (error) {
    if (!(error instanceof ApiFailure) || error.status >= 500 || error.status === 401) throw error
    const { code, message } = error
    return { id, ok: false, status: null, error: { code, message } }
  }
}

/** The oldest first. All are read before the first is decided about, since a list that changes has no steady pages. */
async function proposedBefore(client: Client, until: number): Promise<string[]> {
  const ids: string[] = []
  let after: string | null = null
  do {
    const query: Record<string, unknown> = { status: 'proposed', limit: 100, ...(after !== null && { after }) }
    const { body } = await client.call({ method: 'GET', path: '/api/v1/learnings', query })
    for (const learning of listAt(body, 'data')) {
      const id = textAt(learning, 'id')
      if (id !== null && Date.parse(textAt(learning, 'createdAt') ?? '') < until) ids.push(id)
    }
    after = textAt(body, 'nextCursor')
  } while (after !== null)
  return ids.toReversed()
}
