import { localText } from '../../arguments/values.ts'
import type { CommandContext, Flow } from '../../context/context.ts'
import { usageError } from '../../errors/cli-error.ts'
import type { Client } from '../../calls/client.ts'
import { failureOf } from '../../http/client.ts'
import { callOf, printReply } from '../../http/route-call.ts'
import type { StreamedBody } from '../../calls/api-call.ts'
import { base64Length, byteSource, inBase64, type ByteSource } from '../../machine/byte-source.ts'
import { textAt } from '../../replies/fields.ts'

/** `file upload`: sends a file while it reads it. Within a run it belongs to the run's task, unless told otherwise. */
export const fileUpload: Flow = async (context) => {
  const source = sourceOf(context)
  const name = context.values.body?.['name'] ?? source.name
  if (name === null) throw usageError('Standard input has no name: give one with --name.')
  const client = await context.connect()
  const task = await taskOf(context, client)
  const role = localText(context.values, 'role')
  if (role !== null && task === null)
    throw usageError('--role says what the file is to a task, and there is none.', 'Name one with --task.')
  const named = (context.values.body?.['relations'] ?? []) as readonly unknown[]
  const relations =
    task === null ? named : [...named, { entityType: 'task', entityId: task, role: role ?? 'attachment' }]
  return sendContent(context, client, { source, body: { ...context.values.body, name, relations } })
}

/** `file replace`: sends the next version. */
export const fileReplace: Flow = async (context) =>
  sendContent(context, await context.connect(), { source: sourceOf(context), body: {} })

const sourceOf = ({ values, resolvePath }: CommandContext): ByteSource =>
  byteSource(localText(values, 'path') ?? '', resolvePath)

/** The task that was named; else that of the run this shell is in, unless it is said what the file belongs to. */
async function taskOf({ values, env }: CommandContext, client: Client): Promise<string | null> {
  const task = localText(values, 'task')
  if (task !== null) return task === 'none' ? null : task
  if (env.runId === null || values.body?.['relations'] !== undefined) return null
  const reply = await client.send({ method: 'GET', path: '/api/v1/tasks/current' })
  if (reply.status === 404) return null
  if (reply.status >= 300) throw failureOf(reply)
  return textAt(reply.body, 'id')
}

async function sendContent(
  context: CommandContext,
  client: Client,
  { source, body }: { source: ByteSource; body: Record<string, unknown> },
): Promise<number> {
  const { body: _, ...call } = callOf(context)
  const reply = await client.call({ ...call, streamed: streamedOf(source, body) })
  await printReply(context, reply.body)
  return 0
}

/** The body with the content behind everything else. */
function streamedOf(source: ByteSource, body: Record<string, unknown>): StreamedBody {
  const text = JSON.stringify({ ...body, contentBase64: '' })
  const [before, after] = [Buffer.from(text.slice(0, -2)), Buffer.from('"}')]
  const { sizeBytes } = source
  return {
    length: sizeBytes === null ? null : before.length + base64Length(sizeBytes) + after.length,
    isRepeatable: sizeBytes !== null,
    async *read() {
      yield before
      yield* inBase64(source.read())
      yield after
    },
  }
}
