import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parseJsonText } from '../../shared/lib/lines.ts'
import { formatMessages } from '../kit/sse-text.ts'

/** A small server that speaks the API's envelopes, where a test decides what is answered. */
export interface Received {
  method: string
  path: string
  query: URLSearchParams
  headers: IncomingMessage['headers']
  body: unknown
}

export type Answer =
  | { status?: number; body?: unknown; headers?: Record<string, string> }
  | ((response: ServerResponse) => void)

export interface ApiServer {
  url: string
  received: Received[]
  close(): Promise<void>
}

/** `answer` gets the request and how many of its method and path came before. */
export async function startApi(answer: (request: Received, before: number) => Answer, port = 0): Promise<ApiServer> {
  const received: Received[] = []
  const server = createServer((request, response) => {
    void readAll(request).then((text) => {
      const url = new URL(request.url!, 'http://server')
      const method = request.method!
      const before = received.filter((other) => other.method === method && other.path === url.pathname).length
      const isForm = request.headers['content-type'] === 'application/x-www-form-urlencoded'
      const body = text === '' ? undefined : isForm ? new URLSearchParams(text) : (parseJsonText(text) ?? text)
      const seen = { method, path: url.pathname, query: url.searchParams, headers: request.headers, body }
      received.push(seen)
      const given = answer(seen, before)
      if (typeof given === 'function') return given(response)
      response.writeHead(given.status ?? 200, { 'Content-Type': 'application/json', ...given.headers })
      return response.end(given.body === undefined ? '' : JSON.stringify(given.body))
    })
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

async function readAll(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}

export const refusal = (status: number, code: string, more: Record<string, unknown> = {}): Answer => ({
  status,
  body: { error: { type: 'invalid_request_error', code, message: `It is ${code}.`, requestId: 'req_1', ...more } },
})

/** A stream of these messages, which then ends, breaks off or goes on in silence. */
export const stream =
  (messages: Parameters<typeof formatMessages>[0], end: 'end' | 'cut' | 'open'): Answer =>
  (response: ServerResponse) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    response.write(formatMessages(messages), () => {
      if (end === 'end') response.end()
      if (end === 'cut') response.destroy()
    })
  }
