import type { TestServer } from './server.ts'

// A reader of server-sent events that a test asks message by message.

export interface StreamedMessage {
  id: string | null
  event: string | null
  // Tests look into messages of all shapes.
  // oxlint-disable-next-line typescript/no-explicit-any
  data: any
}

export interface OpenStream {
  response: Response
  /** The next messages, waiting for them. Fails when the stream ends before. */
  take(count: number): Promise<StreamedMessage[]>
  /** All messages until the server ends the stream. */
  rest(): Promise<StreamedMessage[]>
  /** The reader goes away. */
  abort(): void
}

export async function openStream(
  server: TestServer,
  path: string,
  headers: Record<string, string> = {},
): Promise<OpenStream> {
  return readStream(`${server.nextUrl()}/api/v1${path}`, {
    headers: { accept: 'text/event-stream', authorization: `Bearer ${server.owner.token}`, ...headers },
  })
}

/** The same for any request that answers a stream. */
export async function readStream(url: string, request: RequestInit): Promise<OpenStream> {
  const controller = new AbortController()
  const response = await fetch(url, { ...request, signal: controller.signal })
  if (response.status !== 200 || response.body === null)
    throw new Error(`no stream: ${response.status} ${await response.text()}`)
  const messages = parseMessages(response.body)
  const next = async () => {
    const result = await messages.next()
    return result.done ? null : result.value
  }
  return {
    response,
    async take(count) {
      const taken: StreamedMessage[] = []
      while (taken.length < count) taken.push((await next()) ?? endedAfter(taken.length))
      return taken
    },
    async rest() {
      const taken: StreamedMessage[] = []
      for (let message = await next(); message !== null; message = await next()) taken.push(message)
      return taken
    },
    abort: () => controller.abort(),
  }
}

function endedAfter(count: number): never {
  throw new Error(`the stream ended after ${count} of the messages asked for`)
}

async function* parseMessages(body: ReadableStream<Uint8Array>): AsyncGenerator<StreamedMessage> {
  const decoder = new TextDecoder()
  let buffered = ''
  for await (const chunk of body) {
    buffered += decoder.decode(chunk, { stream: true })
    for (let end = buffered.indexOf('\n\n'); end >= 0; end = buffered.indexOf('\n\n')) {
      const message = parseMessage(buffered.slice(0, end))
      buffered = buffered.slice(end + 2)
      if (message !== null) yield message
    }
  }
}

/** null for a comment, which keeps the connection alive. */
function parseMessage(text: string): StreamedMessage | null {
  const fields = new Map<string, string>()
  for (const line of text.split('\n')) {
    const at = line.indexOf(': ')
    if (at > 0) fields.set(line.slice(0, at), (fields.get(line.slice(0, at)) ?? '') + line.slice(at + 2))
  }
  const data = fields.get('data')
  if (data === undefined) return null
  return { id: fields.get('id') ?? null, event: fields.get('event') ?? null, data: JSON.parse(data) }
}
