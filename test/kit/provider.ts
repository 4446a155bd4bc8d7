import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Provider } from 'oidc-provider'
import { Browser } from './browser.ts'

export interface Exchange {
  /** null: a code was sent. */
  refreshToken: string | null
  /** The access token, and then the refresh token; nothing when it was refused. */
  given: readonly string[]
  at: number
}

/**
 * A real provider of OAuth on loopback (oidc-provider): PKCE, refresh tokens that work once, revocation of the whole sign-in when one
 * comes twice, tokens of a minute. A test says what whoever is asked there answers, and what becomes of requests on their way.
 */
export class OauthProvider {
  readonly url: string
  /** The account of who is at the browser. */
  account = 'ada'
  /** Whether they approve. */
  approves = true
  /** Grant types and outcomes of all requests of the token endpoint. */
  readonly asked: string[] = []
  /** All requests of the token endpoint that it answered, with what was sent and given. */
  readonly exchanges: Exchange[] = []
  readonly revoked: string[] = []
  /** What becomes of requests: `away` breaks them off unread, `lost` breaks off after the provider has done its part. */
  wire: 'good' | 'away' | 'lost' = 'good'
  /** Called when a request of the token endpoint has come, which `drop` breaks off, and once more when the provider has done its part. */
  onToken: (moment: 'asked' | 'done') => Promise<'drop' | void> | void = () => undefined
  private readonly server = createServer((request, response) => void this.answer(request, response))
  private provider: Provider | null = null

  static async start(): Promise<OauthProvider> {
    const provider = new OauthProvider()
    await new Promise<void>((resolve) => provider.server.listen(0, '127.0.0.1', resolve))
    Object.assign(provider, { url: `http://127.0.0.1:${(provider.server.address() as AddressInfo).port}` })
    return provider
  }

  private constructor() {
    this.url = ''
  }

  /** Its entry in the catalog. */
  entry(id = 'provider'): Record<string, unknown> {
    const { url } = this
    return {
      id,
      label: 'Provider',
      authKind: 'oauth',
      surfaces: ['mcp', 'native'],
      mcp: { url: `${url}/mcp` },
      scopes: ['openid', 'offline_access'],
      oauth: {
        issuer: url,
        authorizeUrl: `${url}/auth`,
        tokenUrl: `${url}/token`,
        revokeUrl: `${url}/token/revocation`,
        clientId: 'svc',
        clientSecret: 'client-secret-of-svc',
        env: 'PROVIDER_TOKEN',
      },
    }
  }

  /** Knows from now on the server whose people it sends back; `features` and all else are settings of the package. */
  serve(
    serverUrl: string,
    {
      rotates = true,
      tokenS = 60,
      features = {},
      ...more
    }: { rotates?: boolean; tokenS?: number; features?: object; [setting: string]: unknown } = {},
  ): void {
    const provider = new Provider(this.url, {
      clients: [
        {
          client_id: 'svc',
          client_secret: 'client-secret-of-svc',
          redirect_uris: [`${serverUrl}/integrations/connections/callback`],
          grant_types: ['authorization_code', 'refresh_token'],
        },
      ],
      cookies: { keys: ['for tests'] },
      features: { devInteractions: { enabled: false }, revocation: { enabled: true }, ...features },
      ...more,
      findAccount: (_: unknown, accountId: string) => ({ accountId, claims: () => ({ sub: accountId }) }),
      interactions: { url: (_: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
      rotateRefreshToken: rotates,
      ttl: { AccessToken: tokenS, Grant: 3_600, IdToken: 60, Interaction: 600, RefreshToken: 3_600, Session: 3_600 },
    })
    interface Told {
      oidc: { params?: { grant_type?: string; refresh_token?: string } }
      body?: { access_token?: string; refresh_token?: string }
    }
    const told =
      (outcome: string) =>
      ({ oidc: { params }, body }: Told) => {
        this.asked.push(`${params?.grant_type} ${outcome}`)
        const given = [body?.access_token, body?.refresh_token].filter((token) => token !== undefined)
        this.exchanges.push({ refreshToken: params?.refresh_token ?? null, given, at: performance.now() })
      }
    provider.on('grant.success', told('good'))
    provider.on('grant.error', told('refused'))
    this.provider = provider
  }

  /** For which server an access token is; null: it does not work. */
  async audienceOf(token: string): Promise<string | null> {
    const found = await this.provider?.AccessToken.find(token)
    return found === undefined || found.isExpired ? null : (found.aud ?? '')
  }

  /** What the person at the browser does at the provider; returns where they are sent back to. */
  async visit(authorizeUrl: string): Promise<string> {
    const browser = new Browser({ url: this.url })
    let at = authorizeUrl
    for (let hops = 0; hops < 12; hops++) {
      const { location, status, text } = await browser.visit(at)
      if (location === null) throw new Error(`the provider answers ${status}: ${text.slice(0, 500)}`)
      at = new URL(location, at).href
      if (!at.startsWith(this.url)) return at
    }
    throw new Error('the provider does not come to an end')
  }

  stop(): Promise<void> {
    return new Promise((resolve) => {
      this.server.close(() => resolve())
      this.server.closeAllConnections()
    })
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { provider } = this
    const path = new URL(request.url ?? '/', this.url).pathname
    if (provider === null || this.wire === 'away') return void request.socket.destroy()
    if (path.startsWith('/interaction/')) return this.interact(provider, request, response)
    const isToken = path === '/token'
    if (path === '/token/revocation') this.revoked.push('asked')
    if (isToken && (await this.onToken('asked')) === 'drop') return void request.socket.destroy()
    const isLost = this.wire === 'lost' && path.startsWith('/token')
    if (!isToken && !isLost) return provider.callback()(request, response)
    // Nothing of the answer leaves before the test has seen that it is there.
    const end = response.end.bind(response)
    response.end = ((...parts: Parameters<typeof end>) => {
      void Promise.resolve(this.onToken('done')).then(() => (isLost ? request.socket.destroy() : end(...parts)))
      return response
    }) as typeof response.end
    return provider.callback()(request, response)
  }

  private async interact(provider: Provider, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { prompt, params, session } = await provider.interactionDetails(request, response)
    const finish = (result: object) => provider.interactionFinished(request, response, result)
    if (!this.approves) return finish({ error: 'access_denied', error_description: 'No.' })
    if (prompt.name === 'login') return finish({ login: { accountId: this.account } })
    const grant = new provider.Grant({ accountId: session?.accountId ?? this.account, clientId: params.client_id })
    grant.addOIDCScope(params.scope ?? '')
    for (const [resource, scopes] of Object.entries(prompt.details.missingResourceScopes ?? {}))
      grant.addResourceScope(resource, scopes.join(' '))
    return finish({ consent: { grantId: await grant.save() } })
  }
}
