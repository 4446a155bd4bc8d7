import { z } from 'zod'
import { SseReader } from '../cli/replies/sse.ts'

/** The one real job of `scripts/start`, done over the public API like any client. */
export class DemoApi {
  private readonly url: string
  private readonly token: string

  constructor(url: string, token: string) {
    this.url = `${url}/api/v1`
    this.token = token
  }

  async call<T extends z.ZodType>(method: string, path: string, schema: T, body?: unknown): Promise<z.infer<T>> {
    const response = await fetch(this.url + path, {
      method,
      headers: { authorization: `Bearer ${this.token}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`)
    return schema.parse(text === '' ? null : JSON.parse(text))
  }

  /** Yields run events as they come, until the stream says that the run is over. */
  async *follow(path: string): AsyncGenerator<z.infer<typeof event>> {
    const response = await fetch(this.url + path, {
      headers: { authorization: `Bearer ${this.token}`, accept: 'text/event-stream' },
    })
    if (!response.ok || !response.body) throw new Error(`GET ${path} answered ${response.status}`)
    const reader = new SseReader()
    for await (const chunk of response.body) {
      for (const message of reader.push(chunk)) {
        if (message.event === 'end') return
        yield event.parse(JSON.parse(message.data))
      }
    }
  }
}

const event = z.object({ kind: z.string(), createdAt: z.string(), data: z.record(z.string(), z.unknown()) })
const withId = z.object({ id: z.string() })
const run = z.object({
  status: z.string(),
  exitReason: z.string().nullable(),
  errorMessage: z.string().nullable(),
  createdAt: z.string(),
})
const changeSet = z.object({
  files: z.array(z.unknown()),
  additions: z.number(),
  deletions: z.number(),
  diff: z.string(),
})

export interface DemoResult {
  runId: string
  status: string
  exitReason: string | null
  events: number
  changeSet: { files: number; additions: number; deletions: number }
  wakeToStartMs: number
}

const command = [
  'echo "$SVC_PROMPT"',
  'echo "looking around in $(pwd)"; ls',
  'printf "\\n## Notes\\n\\nThis paragraph was written by a run.\\n" >> README.md',
  'mkdir -p notes && date -u +"written at %Y-%m-%dT%H:%M:%SZ" > "notes/$SVC_RUN_ID.txt"',
  'echo done',
].join('\n')

export async function runDemo(api: DemoApi, folder: string, say: (text: string) => void): Promise<DemoResult> {
  const devices = await api.call(
    'GET',
    '/devices',
    z.object({ devices: z.array(z.object({ publicId: z.string(), online: z.boolean() })) }),
  )
  const device = devices.devices.find((each) => each.online)
  if (!device) throw new Error('No device of this person is connected.')
  const folderId = await findOrAddFolder(api, folder, device.publicId)
  const agentId = await findOrCreateAgent(api, folderId)
  const started = await api.call(
    'POST',
    `/agents/${agentId}/runs`,
    z.looseObject({ kind: z.string(), runPublicId: z.string().optional() }),
    {
      prompt: 'Add a note to the README.',
    },
  )
  const runId = started.runPublicId
  if (runId === undefined) throw new Error(`The run was not started: ${JSON.stringify(started)}`)
  let events = 0
  let startedAt: string | null = null
  for await (const each of api.follow(`/runs/${runId}/events`)) {
    events++
    if (each.kind === 'started') startedAt = each.createdAt
    say(`  ${each.kind.padEnd(8)} ${describe(each.data)}`)
  }
  const ended = await api.call('GET', `/runs/${runId}`, run)
  if (ended.status !== 'succeeded')
    throw new Error(`The run ended ${ended.status}: ${ended.errorMessage ?? ended.exitReason}`)
  const changes = await api.call('GET', `/runs/${runId}/change-set`, changeSet)
  say(changes.diff)
  return {
    runId,
    status: ended.status,
    exitReason: ended.exitReason,
    events,
    changeSet: { files: changes.files.length, additions: changes.additions, deletions: changes.deletions },
    wakeToStartMs: startedAt === null ? -1 : Date.parse(startedAt) - Date.parse(ended.createdAt),
  }
}

const describe = (data: Record<string, unknown>) =>
  (typeof data.text === 'string' ? data.text : JSON.stringify(data)).trimEnd().replaceAll(/\r?\n/g, '\n           ')

async function findOrAddFolder(api: DemoApi, rootPath: string, deviceId: string): Promise<string> {
  const source = z.object({ shortId: z.string(), config: z.object({ deviceId: z.string(), rootPath: z.string() }) })
  const { sources } = await api.call('GET', '/folders', z.object({ sources: z.array(source) }))
  const known = sources.find((each) => each.config.rootPath === rootPath && each.config.deviceId === deviceId)
  if (known) return known.shortId
  return (
    await api.call('POST', '/folders', z.object({ shortId: z.string() }), { displayName: 'demo', rootPath, deviceId })
  ).shortId
}

async function findOrCreateAgent(api: DemoApi, defaultFolderId: string): Promise<string> {
  const { data } = await api.call(
    'GET',
    '/agents?q=demo',
    z.object({ data: z.array(withId.extend({ name: z.string() })) }),
  )
  const known = data.find((agent) => agent.name === 'Demo')
  if (known) {
    await api.call('PATCH', `/agents/${known.id}`, z.unknown(), { defaultFolderId })
    return known.id
  }
  const body = { name: 'Demo', role: 'agent', harness: 'command', command, defaultFolderId }
  return (await api.call('POST', '/agents', withId, body)).id
}
