import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'

export interface McpCall {
  method: string
  path: string
  headers: IncomingMessage['headers']
  /** The message, where one was sent. */
  said: { id?: number | string; method?: string; params?: Record<string, unknown> } | null
}

export interface McpHttpServer {
  url: string
  calls: McpCall[]
  /** Requests of this method of the protocol. */
  of(method: string): McpCall[]
  /** Streams that are open: of listening requests. */
  open: Set<ServerResponse>
  /** Answers instead of the server. True: it did. */
  instead: ((call: McpCall, response: ServerResponse) => boolean) | null
  /** The credential that is taken from now on; null: any. */
  accepts: string | null
  stop(): Promise<void>
}

const tool = {
  name: 'say',
  description: 'Says it.',
  annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
  inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
}

/**
 * An MCP server on loopback that speaks both versions of the protocol: 2025-11-25 with sessions, 2026-07-28 without. It takes who has
 * the credential, and its tool `say` returns its text.
 */
export async function startMcpServer(accepts: string | null = null): Promise<McpHttpServer> {
  const server = createServer((request, response) => void serve(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const made: McpHttpServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    calls: [],
    of: (method) => made.calls.filter(({ said }) => said?.method === method),
    open: new Set(),
    instead: null,
    accepts,
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return made

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url: path = '', headers } = request
    const body = (await buffer(request)).toString('utf8')
    const said = body === '' ? null : (JSON.parse(body) as NonNullable<McpCall['said']>)
    const call = { method, path, headers, said }
    made.calls.push(call)
    if (made.accepts !== null && headers.authorization !== made.accepts) {
      response.writeHead(401, { 'www-authenticate': 'Bearer resource_metadata="http://127.0.0.1:1/x"' }).end()
      return
    }
    if (made.instead?.(call, response) === true) return
    if (method === 'GET' || said?.method === 'subscriptions/listen') return listen(response)
    if (method === 'DELETE' || said?.id === undefined) return void response.writeHead(202).end()
    const isSession = said.method === 'initialize'
    response.writeHead(200, {
      'content-type': 'application/json',
      ...(isSession && { 'mcp-session-id': 'session-1' }),
    })
    response.end(JSON.stringify({ jsonrpc: '2.0', id: said.id, ...answerTo(said) }))
  }

  function listen(response: ServerResponse): void {
    made.open.add(response)
    response.on('close', () => made.open.delete(response))
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('event: message\ndata: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\n\n')
  }
}

const served = { capabilities: { tools: {} }, serverInfo: { name: 'test', version: '1' } }

function answerTo({ method, params = {} }: NonNullable<McpCall['said']>): object {
  if (method === 'initialize') return { result: { protocolVersion: params['protocolVersion'], ...served } }
  if (method === 'tools/list') return { result: { tools: [tool] } }
  if (method === 'tools/call') {
    const { text } = params['arguments'] as { text: string }
    return { result: { content: [{ type: 'text', text: `said ${text}` }] } }
  }
  if (method === 'ping') return { result: {} }
  return { error: { code: -32601, message: 'Method not found' } }
}
