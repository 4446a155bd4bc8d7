import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server'
import { OauthProvider } from './provider.ts'

/**
 * An MCP server (`@modelcontextprotocol/server`) whose people sign in at a real provider of OAuth, as the specification has it: it takes
 * tokens that were given for it alone, and says where people get one.
 */
export class McpOauthServer {
  readonly provider: OauthProvider
  /** Where the protocol is spoken. */
  url = ''
  /** Tokens of requests that it took, oldest first. */
  readonly taken: string[] = []
  /** All credentials that it was sent, whether it took them or not. */
  readonly seen: string[] = []
  /** For how long a token works that is given from now on. */
  tokenS = 60
  /** Says something else than the truth of itself; by the path that is asked. True: it did. */
  instead: ((path: string, response: ServerResponse, request: IncomingMessage) => boolean) | null = null
  /** What it says of itself. */
  metadata: () => Record<string, unknown> = () => ({
    resource: this.url,
    authorization_servers: [this.provider.url],
    scopes_supported: ['openid', 'notes:read'],
  })
  private readonly http = createServer((request, response) => void this.serve(request, response))
  private readonly handler = createMcpHandler(() => {
    const server = new McpServer({ name: 'notes', version: '1' }, { capabilities: { tools: {} } })
    server.registerTool('say', { description: 'Says hey.', annotations: { readOnlyHint: true } }, () => ({
      content: [{ type: 'text' as const, text: 'hey' }],
    }))
    return server
  })

  static async start(): Promise<McpOauthServer> {
    const server = new McpOauthServer(await OauthProvider.start())
    await new Promise<void>((resolve) => server.http.listen(0, '127.0.0.1', resolve))
    server.url = `http://127.0.0.1:${(server.http.address() as AddressInfo).port}/mcp`
    return server
  }

  private constructor(provider: OauthProvider) {
    this.provider = provider
  }

  get origin(): string {
    return new URL(this.url).origin
  }

  /** Has the provider send people back to the server of svc. `features` are further ones of the provider. */
  knows(svcUrl: string, { features = {}, ...more }: { features?: object; [setting: string]: unknown } = {}): void {
    this.provider.serve(svcUrl, {
      features: {
        resourceIndicators: {
          enabled: true,
          getResourceServerInfo: (_: unknown, resource: string) => ({
            scope: 'notes:read',
            audience: resource,
            accessTokenFormat: 'opaque',
          }),
        },
        ...features,
      },
      tokenS: this.tokenS,
      scopes: ['openid', 'offline_access', 'notes:read'],
      ...more,
    })
  }

  async stop(): Promise<void> {
    await this.provider.stop()
    this.http.closeAllConnections()
    await new Promise((resolve) => this.http.close(resolve))
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = new URL(request.url ?? '/', this.origin).pathname
    const { authorization } = request.headers
    if (authorization !== undefined) this.seen.push(authorization)
    if (this.instead?.(path, response, request) === true) return
    if (path === '/.well-known/oauth-protected-resource/mcp') {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(this.metadata()))
      return
    }
    if (path !== '/mcp') return void response.writeHead(404).end()
    const token = /^Bearer (.+)$/.exec(authorization ?? '')?.[1]
    if (token === undefined || (await this.provider.audienceOf(token)) !== this.url) {
      const at = `${this.origin}/.well-known/oauth-protected-resource/mcp`
      response.writeHead(401, { 'www-authenticate': `Bearer resource_metadata="${at}"` }).end()
      return
    }
    this.taken.push(token)
    const headers = Object.entries(request.headers).flatMap(([name, value]) =>
      typeof value === 'string' && !['host', 'connection', 'content-length'].includes(name)
        ? [[name, value] as const]
        : [],
    )
    const body = request.method === 'POST' ? await buffer(request) : null
    const answer = await this.handler.fetch(
      new Request(this.url, {
        method: request.method ?? 'GET',
        headers: Object.fromEntries(headers),
        ...(body !== null && { body: new Uint8Array(body) }),
      }),
    )
    response.writeHead(answer.status, Object.fromEntries(answer.headers))
    if (answer.body === null) return void response.end()
    await pipeline(Readable.fromWeb(answer.body as never), response).catch(() => undefined)
  }
}
