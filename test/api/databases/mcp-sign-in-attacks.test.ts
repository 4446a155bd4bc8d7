import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createOutbound } from '../../../control-plane/outbound/outbound.ts'
import { discoveryLimits, findIssuer } from '../../../control-plane/resources/connections/own/mcp-discovery.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import { signedIn } from '../../kit/signed-in.ts'
import { McpOauthServer } from '../../kit/mcp-oauth-server.ts'
import { outcomeOf, TestServer } from '../../kit/server.ts'
import { serviceSettings } from '../../kit/services.ts'

// MCP servers and authorization servers that lie to get at the accounts of people, at clients, or at this server.

/** Says what a test has it say, and keeps what it was sent. */
class Liar {
  url = ''
  readonly heard: { path: string; authorization: string | undefined; body: string }[] = []
  answers: Record<string, unknown> = {}
  private readonly http = createServer((request, response) => void this.answer(request, response))

  static async start(): Promise<Liar> {
    const liar = new Liar()
    await new Promise<void>((resolve) => liar.http.listen(0, '127.0.0.1', resolve))
    liar.url = `http://127.0.0.1:${(liar.http.address() as AddressInfo).port}`
    return liar
  }

  stop(): Promise<void> {
    this.http.closeAllConnections()
    return new Promise((resolve) => this.http.close(() => resolve()))
  }

  /** The description of an authorization server. */
  issuer(changes: Record<string, unknown> = {}): Record<string, unknown> {
    const { url } = this
    return {
      issuer: url,
      authorization_endpoint: `${url}/auth`,
      token_endpoint: `${url}/token`,
      registration_endpoint: `${url}/register`,
      response_types_supported: ['code'],
      code_challenge_methods_supported: ['S256'],
      token_endpoint_auth_methods_supported: ['client_secret_basic', 'none'],
      authorization_response_iss_parameter_supported: true,
      ...changes,
    }
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    request.on('error', () => {})
    const path = new URL(request.url ?? '/', this.url).pathname
    this.heard.push({ path, authorization: request.headers.authorization, body: await text(request).catch(() => '') })
    const said = this.answers[path]
    if (said === undefined) return void response.writeHead(404).end()
    if (typeof said === 'function') return (said as (response: ServerResponse) => void)(response)
    response.writeHead(path === '/register' ? 201 : 200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(said))
  }
}

let site: McpOauthServer
let liar: Liar
let server: TestServer
let visits = 0
const honest = { metadata: (): Record<string, unknown> => ({}) }

beforeAll(async () => {
  site = await McpOauthServer.start()
  honest.metadata = site.metadata
  liar = await Liar.start()
  const settings = { SVC_SECRETS_KEY: 'ab'.repeat(32), SVC_TRUSTED_PROXIES: '1', ...serviceSettings({ services: [] }) }
  server = await TestServer.start({ settings })
  site.knows(server.url, { features: { registration: { enabled: true } } })
})
afterAll(async () => {
  await server.stop()
  await site.stop()
  await liar.stop()
})
afterEach(() => {
  site.metadata = honest.metadata
  site.instead = null
  liar.answers = {}
  liar.heard.length = 0
})

const newServer = async (url: string) =>
  (await server.ok('/mcp-servers', { body: { name: `n${crypto.randomUUID()}`, url } })).id as string
const begin = async (url: string, id?: string) => {
  const integration = `mcp-server:${id ?? (await newServer(url))}`
  return server.call('/connections', {
    body: { integration, ownerType: 'company', accountLabel: crypto.randomUUID() },
  })
}
const comeBack = async (back: string) =>
  (await signedIn(server)).visit(back, { headers: { 'x-forwarded-for': `10.3.${visits++}.1` } })
const refused = (reply: Awaited<ReturnType<typeof begin>>, words: string) => {
  expect([outcomeOf(reply), JSON.stringify(reply.body)]).toEqual([
    '400 oauth_exchange_failed',
    expect.stringContaining(words),
  ])
}
/** The liar is an MCP server that sends people to an issuer. */
const asServer = (metadata: Record<string, unknown>) => {
  liar.answers['/.well-known/oauth-protected-resource/mcp'] = { resource: `${liar.url}/mcp`, ...metadata }
}

describe('a server that describes', () => {
  test.each([
    ['another server', () => site.url],
    ['what lies below it', () => `${liar.url}/mcp/more`],
    ['a neighbour', () => `${liar.url}/mc`],
  ])('%s is not signed in to, so that nobody’s token for that comes to it', async (_, resource) => {
    const asked = site.provider.asked.length
    asServer({ resource: resource(), authorization_servers: [site.provider.url] })
    refused(await begin(`${liar.url}/mcp`), 'describes another server')
    expect(site.provider.asked.length).toBe(asked)
  })

  test('itself elsewhere, by a redirect, is not followed there', async () => {
    site.instead = (path, response) => {
      if (!path.startsWith('/.well-known')) return false
      response.writeHead(302, { location: `${liar.url}/elsewhere` }).end()
      return true
    }
    refused(await begin(site.url), 'does not say well')
    expect(liar.heard).toEqual([])
  })

  test('itself with 100 MB is read no further than the limit', async () => {
    let sent = 0
    const long = (response: ServerResponse) => {
      response.writeHead(200, { 'content-type': 'application/json' }).on('error', () => {})
      const more = () => {
        while (!response.destroyed && sent < 100 * 1024 * 1024) {
          sent += 65_536
          if (!response.write(' '.repeat(65_536))) return void response.once('drain', more)
        }
        response.end()
      }
      more()
    }
    liar.answers['/.well-known/oauth-protected-resource/mcp'] = long
    refused(await begin(`${liar.url}/mcp`), 'too large')
    expect(sent).toBeLessThan(20 * 1024 * 1024)
  })

  test('itself a byte at a time is left alone when its time is over, however many answers share it', async () => {
    const world = {
      after: (ms: number, work: () => void) => realWorld.after(ms / 100, work),
      monotonic: () => realWorld.monotonic() * 100,
    }
    const outbound = createOutbound({ allowHosts: ['127.0.0.1'], world })
    const trickle = (response: ServerResponse) => {
      response.writeHead(200, { 'content-type': 'application/json' }).on('error', () => {})
      const next = () => void (response.destroyed || (response.write(' '), setTimeout(next, 5)))
      next()
    }
    liar.answers['/.well-known/oauth-protected-resource/mcp'] = trickle
    const began = world.monotonic()
    await expect(findIssuer(`${liar.url}/mcp`, { outbound, world })).rejects.toThrow('took longer')
    expect(world.monotonic() - began).toBeLessThan(discoveryLimits.totalMs * 2)
  })
})

describe('an authorization server that', () => {
  test.each([
    ['says that it is another one', { issuer: 'https://id.example.com' }, 'it is another one'],
    ['has no PKCE', { code_challenge_methods_supported: undefined }, 'PKCE'],
    ['has addresses of another network', { token_endpoint: 'http://10.0.0.1/token' }, 'not asked'],
    ['has an address that is a program', { authorization_endpoint: 'javascript:alert(1)' }, 'describe itself'],
    ['gives no codes', { response_types_supported: ['token'] }, 'gives no codes'],
    ['is nameless', { issuer: undefined }, 'describe itself'],
  ])('%s is not used', async (_, changes, words) => {
    asServer({ authorization_servers: [liar.url] })
    liar.answers['/.well-known/oauth-authorization-server'] = liar.issuer(changes)
    refused(await begin(`${liar.url}/mcp`), words)
    expect(liar.heard.map(({ path }) => path)).not.toContain('/register')
  })

  test.each([
    ['somebody else’s', ['https://evil.example/callback']],
    ['one more', ['OWN', 'https://evil.example/callback']],
    ['none', []],
  ])('registers %s redirect address gives no client', async (_, uris) => {
    asServer({ authorization_servers: [liar.url] })
    const own = `${server.url}/integrations/connections/callback`
    liar.answers['/.well-known/oauth-authorization-server'] = liar.issuer()
    const redirect_uris = uris.map((uri) => (uri === 'OWN' ? own : uri))
    liar.answers['/register'] = { client_id: 'stolen', redirect_uris }
    refused(await begin(`${liar.url}/mcp`), 'another redirect address')
    const registered = JSON.parse(liar.heard.find(({ path }) => path === '/register')!.body)
    expect(registered).toMatchObject({ redirect_uris: [own], application_type: 'native' })
  })

  test('registers a client id that is this server’s everywhere gives no client, as codes of others could pass for its own', async () => {
    asServer({ authorization_servers: [liar.url] })
    liar.answers['/.well-known/oauth-authorization-server'] = liar.issuer({
      authorization_endpoint: `${site.provider.url}/auth`,
      authorization_response_iss_parameter_supported: false,
      client_id_metadata_document_supported: true,
    })
    const redirect_uris = [`${server.url}/integrations/connections/callback`]
    liar.answers['/register'] = { client_id: `${server.url}/integrations/connections/client.json`, redirect_uris }
    refused(await begin(`${liar.url}/mcp`), 'its answer is none')
  })

  test('has a name that no database takes is not used', async () => {
    const name = `${liar.url}/\u0000`
    asServer({ authorization_servers: [name] })
    liar.answers['/.well-known/oauth-authorization-server/%00'] = liar.issuer({ issuer: name })
    refused(await begin(`${liar.url}/mcp`), 'its name is none')
  })

  test('registers a client whose secret ends beyond all time gives one that does not', async () => {
    asServer({ authorization_servers: [liar.url] })
    liar.answers['/.well-known/oauth-authorization-server'] = liar.issuer()
    const redirect_uris = [`${server.url}/integrations/connections/callback`]
    const never = { client_secret: 's', client_secret_expires_at: 1e300 }
    liar.answers['/register'] = { client_id: 'for-ever', ...never, redirect_uris }
    liar.answers['/token'] = { access_token: 'x', token_type: 'Bearer' }
    const asked = new URL((await begin(`${liar.url}/mcp`)).body.nextStep.authorizeUrl).searchParams
    const back = new URL(redirect_uris[0]!)
    for (const [name, value] of [
      ['state', asked.get('state')!],
      ['code', 'c'],
      ['iss', liar.url],
    ] as const)
      back.searchParams.set(name, value)
    expect((await comeBack(back.href)).status).toBe(200)
    const [client] = await server.database.root('connection_clients').where({ client_id: 'for-ever' })
    expect(client.secret_expires_at).toBeNull()
  })

  test('comes in place of the one before gets neither its client nor its tokens', async () => {
    const id = await newServer(site.url)
    const first = await begin(site.url, id)
    expect((await comeBack(await site.provider.visit(first.body.nextStep.authorizeUrl))).status).toBe(200)
    const [client] = await server.database.root('connection_clients').where({ issuer: site.provider.url })
    site.metadata = () => ({ ...honest.metadata(), authorization_servers: [liar.url] })
    liar.answers['/.well-known/oauth-authorization-server'] = liar.issuer()
    const redirect_uris = [`${server.url}/integrations/connections/callback`]
    liar.answers['/register'] = { client_id: 'of-liar', client_secret: 'of-liar-secret', redirect_uris }
    liar.answers['/token'] = { access_token: 'x', token_type: 'Bearer' }
    const second = await begin(site.url, id)
    const url = new URL(second.body.nextStep.authorizeUrl)
    expect(url.origin).toBe(liar.url)
    expect(url.searchParams.get('client_id')).not.toBe(client.client_id)
    // The first sign-in is renewed where it was made.
    expect((await server.call(`/mcp-servers/${id}/tools`)).status).toBe(200)
    server.world.advance(60_000)
    expect((await server.call(`/mcp-servers/${id}/tools`)).status).toBe(200)
    server.world.advance(-60_000)
    expect(JSON.stringify(liar.heard)).not.toContain(client.client_id)
    expect(liar.heard.map(({ path }) => path)).not.toContain('/token')
  })
})

describe('a code', () => {
  const codeOf = async (change: (back: URL) => void) => {
    asServer({ authorization_servers: [liar.url] })
    liar.answers['/.well-known/oauth-authorization-server'] = liar.issuer()
    const redirect_uris = [`${server.url}/integrations/connections/callback`]
    liar.answers['/register'] = { client_id: 'client', redirect_uris, token_endpoint_auth_method: 'none' }
    liar.answers['/token'] = { access_token: 'x', token_type: 'Bearer' }
    const { body } = await begin(`${liar.url}/mcp`)
    const back = new URL(redirect_uris[0]!)
    const asked = new URL(body.nextStep.authorizeUrl).searchParams
    back.searchParams.set('state', asked.get('state')!)
    back.searchParams.set('code', 'code-of-another')
    back.searchParams.set('iss', liar.url)
    change(back)
    const page = await comeBack(back.href)
    return { page, sent: liar.heard.find(({ path }) => path === '/token')?.body ?? null }
  }

  test('comes with the name of its issuer, and is exchanged for the server that was signed in to', async () => {
    const { page, sent } = await codeOf(() => {})
    expect([page.status, page.text]).toEqual([200, expect.stringContaining('Connected')])
    expect(new URLSearchParams(sent!).get('resource')).toBe(`${liar.url}/mcp`)
    expect(new URLSearchParams(sent!).get('code_verifier')).toMatch(/^[\w-]{43,}$/)
  })

  test.each([
    ['of another issuer', (back: URL) => back.searchParams.set('iss', 'https://id.example.com')],
    ['of nobody, where the issuer says that it names itself', (back: URL) => back.searchParams.delete('iss')],
  ])('%s is shown to nobody', async (_, change) => {
    const { page, sent } = await codeOf(change)
    expect([page.status, page.text]).toEqual([400, expect.stringContaining('Nothing was connected')])
    expect(sent).toBeNull()
  })

  test('is not taken along by a redirect of the issuer', async () => {
    asServer({ authorization_servers: [liar.url] })
    const redirecting = await codeOf(() => {
      liar.answers['/token'] = (response: ServerResponse) =>
        response.writeHead(307, { location: `${site.provider.url}/token` }).end()
    })
    expect(redirecting.page.status).toBe(400)
    expect(site.provider.asked).not.toContain('authorization_code refused')
  })
})
