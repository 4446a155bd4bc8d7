import { request, type IncomingMessage, type Server } from 'node:http'
import { duplexPair } from 'node:stream'

/**
 * Requests of the server to its own API, for callers that speak another protocol: each takes the one path of a request, with its caller, role,
 * limits and codes. They go over a connection in memory, so that they need no port and work while the server drains.
 */
export interface OwnRequest {
  method: string
  /** The path with its base and its query. */
  path: string
  headers: Readonly<Record<string, string>>
  body: Buffer | null
  /** The most that the body of the answer may have. */
  mostBytes: number
  signal: AbortSignal
}

export interface OwnAnswer {
  status: number
  text: string
  /** The body is larger than was asked for; the text is empty. */
  isTooLarge: boolean
}

export type AskOwn = (own: OwnRequest) => Promise<OwnAnswer>

/** Rejects when the signal is aborted. */
export function ownRequests(server: Server): AskOwn {
  return (own) =>
    new Promise((resolve, reject) => {
      const [ours, theirs] = duplexPair()
      // The end of one side is nothing that the other side notices: an answer that nobody takes would be written for ever.
      ours.once('close', () => theirs.destroy())
      server.emit('connection', theirs)
      const { method, path, headers, body, mostBytes, signal } = own
      const end = () => void ours.destroy()
      const asked = request({
        method,
        path,
        headers: {
          host: 'svc',
          connection: 'close',
          ...headers,
          ...(body !== null && { 'content-length': body.length }),
        },
        createConnection: () => ours,
        signal,
      })
      asked.once('error', (error) => {
        end()
        reject(error)
      })
      asked.once('response', (answer) => {
        const { statusCode: status = 0 } = answer
        gather(answer, mostBytes)
          .then((text) => resolve({ status, text: text ?? '', isTooLarge: text === null }), reject)
          .finally(end)
      })
      asked.end(body ?? undefined)
    })
}

/** Reads the answer; null: it is longer. */
async function gather(answer: IncomingMessage, mostBytes: number): Promise<string | null> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > mostBytes) return null
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
