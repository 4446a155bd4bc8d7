import { Agent, request, type IncomingMessage } from 'node:http'

/** One HTTP request with its answer, as text. */
export interface Exchange {
  status: number
  headers: Headers
  text: string
}

export interface Sent {
  method: string
  headers: Record<string, string>
  body?: string | Buffer
}

/** Whether a request without a body says that it has none. */
const mayHaveBody = new Set(['POST', 'PUT', 'PATCH'])

/** Headers of a request that says how long its body is. */
export interface Announced extends Omit<Sent, 'body'> {
  length: number
}

/**
 * Asks over connections that are kept. The `fetch` of Node takes more time for the same: once one of two connections to a
 * server has ended, it opens a new one for each request.
 */
export class Connections {
  private readonly agent = new Agent({ keepAlive: true })

  ask(url: string, { method, headers, body }: Sent): Promise<Exchange> {
    const bytes = typeof body === 'string' ? Buffer.from(body) : body
    const length = bytes?.byteLength ?? (mayHaveBody.has(method) ? 0 : null)
    const sent = { accept: '*/*', ...headers, ...(length === null ? {} : { 'content-length': String(length) }) }
    return new Promise((resolve, reject) => {
      let isAnswered = false
      const asking = request(url, { method, headers: sent, agent: this.agent }, (reply) => {
        isAnswered = true
        exchangeOf(reply).then(resolve, reject)
      })
      // A server may answer before all of the body has come, and end the connection then.
      asking.on('error', (error) => {
        if (!isAnswered) reject(error)
      })
      asking.end(bytes)
    })
  }

  /** Says that a body comes, and sends nothing of it: what is answered to that alone. */
  announce(url: string, { method, headers, length }: Announced): Promise<Exchange> {
    return new Promise((resolve, reject) => {
      const sent = { ...headers, 'content-length': String(length) }
      const asking = request(url, { method, headers: sent, agent: false }, (reply) => {
        // The server waits for the rest before it ends the answer.
        let text = ''
        reply.setEncoding('utf8').on('data', (part: string) => {
          text += part
          if (text.length < Number(reply.headers['content-length'])) return
          resolve({ status: reply.statusCode!, headers: headersOf(reply), text })
          asking.destroy()
        })
      })
      asking.on('error', reject)
      asking.flushHeaders()
    })
  }

  close(): void {
    this.agent.destroy()
  }
}

function exchangeOf(reply: IncomingMessage): Promise<Exchange> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    reply.on('data', (chunk: Buffer) => chunks.push(chunk))
    reply.once('error', reject)
    reply.once('end', () => {
      resolve({ status: reply.statusCode!, headers: headersOf(reply), text: Buffer.concat(chunks).toString() })
    })
  })
}

function headersOf({ rawHeaders }: IncomingMessage): Headers {
  const headers = new Headers()
  for (let at = 0; at < rawHeaders.length; at += 2) headers.append(rawHeaders[at]!, rawHeaders[at + 1]!)
  return headers
}
