import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, SignJWT, type CryptoKey } from 'jose'

/**
 * A small OpenID Connect issuer on loopback: discovery, keys, the code flow with PKCE, userinfo. It checks what a real one
 * checks and signs what it says; a test decides who is signed in there, and how it goes wrong.
 */
export interface IssuerPerson {
  sub: string
  email?: string
  /** Some issuers send a text. */
  email_verified?: boolean | string
}

export interface Issuer {
  url: string
  clientId: string
  clientSecret: string
  /** Says who is signed in at the issuer. */
  person: IssuerPerson
  /** Requests of the token endpoint that it refused, with the reason. */
  refused: string[]
  /** Says how the next tokens go wrong. */
  flaw: Flaw | null
  /** The address is told by userinfo only. */
  isTerse: boolean
  /** Adds so much to each answer of this path. */
  padding: { path: string; bytes: number } | null
  /** Answers 503 to everything. */
  isAway: boolean
  stop(): Promise<void>
}

export type Flaw = 'nonce' | 'audience' | 'key' | 'expired' | 'issuer'

interface Granted {
  redirectUri: string
  challenge: string
  nonce: string
  person: IssuerPerson
}

interface State {
  issuer: Issuer
  method: 'client_secret_basic' | 'client_secret_post'
  key: { publicKey: CryptoKey; privateKey: CryptoKey }
  codes: Map<string, Granted>
  accessTokens: Map<string, IssuerPerson>
}

export async function startIssuer(
  options: { method?: 'client_secret_basic' | 'client_secret_post' } = {},
): Promise<Issuer> {
  const server = createServer((request, response) => {
    void answer(state, request, response).catch((error: unknown) => response.writeHead(500).end(String(error)))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const issuer: Issuer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    clientId: 'svc-server',
    // Characters that the two ways to send it write differently.
    clientSecret: 'a secret: 50% +/&=',
    person: { sub: 'nobody' },
    refused: [],
    flaw: null,
    isTerse: false,
    padding: null,
    isAway: false,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  const state: State = {
    issuer,
    method: options.method ?? 'client_secret_basic',
    key: await generateKeyPair('RS256'),
    codes: new Map(),
    accessTokens: new Map(),
  }
  return issuer
}

async function answer(state: State, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? '/', state.issuer.url)
  if (state.issuer.isAway) return void response.writeHead(503).end()
  const { padding } = state.issuer
  if (padding?.path === url.pathname)
    response.writeHead(200, { 'content-type': 'application/json' }).write(' '.repeat(padding.bytes))
  switch (url.pathname) {
    case '/.well-known/openid-configuration':
      return send(response, 200, metadata(state))
    case '/jwks':
      return send(response, 200, { keys: [{ ...(await exportJWK(state.key.publicKey)), alg: 'RS256', kid: '1' }] })
    case '/authorize':
      return authorize(state, url, response)
    case '/token':
      return token(state, request, response)
    case '/userinfo': {
      const person = state.accessTokens.get((request.headers.authorization ?? '').replace('Bearer ', ''))
      return person === undefined ? send(response, 401, {}) : send(response, 200, person)
    }
    default:
      return send(response, 404, {})
  }
}

function metadata({ issuer: { url }, method }: State) {
  return {
    issuer: url,
    authorization_endpoint: `${url}/authorize`,
    token_endpoint: `${url}/token`,
    userinfo_endpoint: `${url}/userinfo`,
    jwks_uri: `${url}/jwks`,
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['RS256'],
    token_endpoint_auth_methods_supported: [method],
    code_challenge_methods_supported: ['S256'],
  }
}

/** The person is signed in and agrees at once. */
function authorize({ issuer, codes }: State, url: URL, response: ServerResponse): void {
  const get = (name: string) => url.searchParams.get(name) ?? ''
  const isRight =
    get('response_type') === 'code' &&
    get('client_id') === issuer.clientId &&
    get('scope').split(' ').includes('openid') &&
    get('code_challenge_method') === 'S256' &&
    get('state') !== ''
  if (!isRight) return send(response, 400, { error: 'invalid_request' })
  const code = crypto.randomUUID()
  const redirectUri = get('redirect_uri')
  codes.set(code, { redirectUri, challenge: get('code_challenge'), nonce: get('nonce'), person: issuer.person })
  const back = new URL(redirectUri)
  back.searchParams.set('code', code)
  back.searchParams.set('state', get('state'))
  response.writeHead(302, { location: back.href }).end()
}

async function token(state: State, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { issuer, codes, accessTokens } = state
  const fields = new URLSearchParams(await textOf(request))
  const refuse = (error: string) => {
    issuer.refused.push(error)
    send(response, 400, { error })
  }
  if (!isClient(state, request, fields)) return refuse('invalid_client')
  const granted = codes.get(fields.get('code') ?? '')
  codes.delete(fields.get('code') ?? '')
  const challenge = createHash('sha256')
    .update(fields.get('code_verifier') ?? '')
    .digest('base64url')
  if (fields.get('grant_type') !== 'authorization_code') return refuse('unsupported_grant_type')
  if (granted?.redirectUri !== fields.get('redirect_uri') || granted.challenge !== challenge)
    return refuse('invalid_grant')
  const accessToken = crypto.randomUUID()
  accessTokens.set(accessToken, granted.person)
  send(response, 200, {
    access_token: accessToken,
    token_type: 'Bearer',
    expires_in: 60,
    id_token: await idToken(state, granted),
  })
}

function isClient({ issuer, method }: State, request: IncomingMessage, fields: URLSearchParams): boolean {
  const { clientId, clientSecret } = issuer
  if (method === 'client_secret_post')
    return fields.get('client_id') === clientId && fields.get('client_secret') === clientSecret
  const sent = Buffer.from((request.headers.authorization ?? '').replace('Basic ', ''), 'base64').toString()
  const decode = (text: string) => new URLSearchParams(`x=${text}`).get('x')
  const [id = '', secret = ''] = sent.split(':')
  return decode(id) === clientId && decode(secret) === clientSecret
}

async function idToken({ issuer, key }: State, { nonce, person }: Granted): Promise<string> {
  const { flaw, isTerse } = issuer
  const now = Math.floor(Date.now() / 1000)
  const signer = flaw === 'key' ? (await generateKeyPair('RS256')).privateKey : key.privateKey
  const { sub, ...address } = person
  return new SignJWT({ ...(isTerse ? {} : address), nonce: flaw === 'nonce' ? 'another' : nonce })
    .setProtectedHeader({ alg: 'RS256', kid: '1' })
    .setSubject(sub)
    .setIssuer(flaw === 'issuer' ? 'http://127.0.0.1:1' : issuer.url)
    .setAudience(flaw === 'audience' ? 'another' : issuer.clientId)
    .setIssuedAt(flaw === 'expired' ? now - 7200 : now)
    .setExpirationTime(flaw === 'expired' ? now - 3600 : now + 60)
    .sign(signer)
}

function send(response: ServerResponse, status: number, body: object): void {
  if (!response.headersSent) response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}
