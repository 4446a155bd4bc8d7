import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setImmediate } from 'node:timers/promises'

/**
 * Sends bytes to a service of S3 as `fetch` would, but out of the memory in which they are: `fetch` copies a body before it
 * sends it, and an encrypted connection encrypts at once whatever it is given.
 */
export class ByteSender {
  private readonly plain = new HttpAgent({ keepAlive: true })
  private readonly secure = new HttpsAgent({ keepAlive: true })

  async send(url: string, { method, headers, bytes, timeoutMs }: SentBytes): Promise<Response> {
    const signal = AbortSignal.timeout(timeoutMs)
    const isSecure = url.startsWith('https:')
    const [request, agent] = isSecure ? ([httpsRequest, this.secure] as const) : ([httpRequest, this.plain] as const)
    const sent = request(url, { method, headers: { ...headers }, agent, signal })
    const answered = new Promise<IncomingMessage>((resolve, reject) => {
      sent.once('response', resolve)
      // More than one may come, the last ones when it is settled already.
      sent.on('error', reject)
    })
    // A refusal may come before everything is sent, and the rest then cannot be.
    const written = pipeline(Readable.from(slicesOf(bytes)), sent).catch(() => undefined)
    try {
      return await responseOf(await answered)
    } finally {
      if (!sent.writableFinished) sent.destroy()
      await written
    }
  }
}

export interface SentBytes {
  method: string
  headers: Readonly<Record<string, string>>
  bytes: Uint8Array
  timeoutMs: number
}

const sliceBytes = 64 * 1024
/** The most bytes of an answer that are read: a service says little of bytes it was sent. */
const longestAnswer = 1024 * 1024

/** Gives others their turn between slices: a fast connection takes a slice at once, and the next one, up to the end. */
async function* slicesOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += sliceBytes) {
    yield bytes.subarray(at, at + sliceBytes)
    await setImmediate()
  }
}

async function responseOf(answer: IncomingMessage): Promise<Response> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > longestAnswer) throw new Error('the answer of the storage is too long')
    chunks.push(chunk)
  }
  const headers = Object.entries(answer.headersDistinct).flatMap(([name, values]) =>
    (values ?? []).map((value): [string, string] => [name, value]),
  )
  const body = length === 0 ? null : Buffer.concat(chunks)
  return new Response(body, { status: answer.statusCode ?? 502, headers })
}
