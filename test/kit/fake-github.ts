import { createHmac, createPublicKey, type KeyObject } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { jwtVerify } from 'jose'

/**
 * A small GitHub on loopback, at the address of an Enterprise server's API. It knows what a test put into it, lets in a
 * token or an app by its signed JWT, and answers what it was told to do wrong.
 */
export interface FakeGithub {
  /** For SVC_GITHUB_API_URL. */
  apiUrl: string
  /** The host of repositories' addresses. */
  host: string
  token: string
  /** Answers by path below `/repos`, query left out; a function gets the query. */
  answers: Map<string, unknown>
  /** Says where calls of paths below `/repos` are redirected to. */
  redirects: Map<string, string>
  /** What was asked for with tokens of an app, each as JSON. */
  minting: unknown[]
  /** Paths that were asked for, with their query. */
  asked: string[]
  /** Answers every call with this instead. */
  trouble: { status: number; text: string } | null
  /** With the public key of an app, its JWT is asked for, and only `owner/name` in here are installed. */
  app: { key: KeyObject; id: string; installed: Set<string>; minted: number; lastsMs: number } | null
  stop(): Promise<void>
}

/** The secret of the webhook, of servers that are set up so. */
export const webhookSecret = 'a-secret-of-the-webhook'

/** Settings of a server for which this is GitHub. */
export const githubSettings = (github: FakeGithub) => ({
  SVC_GITHUB_API_URL: github.apiUrl,
  SVC_GITHUB_TOKEN: github.token,
  SVC_GITHUB_WEBHOOK_SECRET: webhookSecret,
})

export async function startFakeGithub(): Promise<FakeGithub> {
  const server = createServer((request, response) => {
    void answer(fake, request, response).catch((error: unknown) => response.writeHead(500).end(String(error)))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const fake: FakeGithub = {
    apiUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/v3`,
    host: '127.0.0.1',
    token: 'ghp_loopback',
    answers: new Map(),
    redirects: new Map(),
    asked: [],
    trouble: null,
    minting: [],
    app: null,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return fake
}

export const publicKeyOf = (pem: string): KeyObject => createPublicKey(pem)

async function answer(fake: FakeGithub, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? '/', fake.apiUrl)
  const path = url.pathname.replace('/api/v3', '')
  const send = (status: number, body: unknown) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  fake.asked.push(path + url.search)
  if (fake.trouble !== null) return void response.writeHead(fake.trouble.status).end(fake.trouble.text)
  const bearer = (request.headers.authorization ?? '').replace(/^Bearer /, '')
  if (fake.app !== null && /\/installation$|^\/app\//.test(path)) {
    const asks = await textOf(request)
    if (asks !== '') fake.minting.push(JSON.parse(asks))
    return answerApp(fake.app, { path, bearer, send })
  }
  if (bearer !== fake.token) return void send(401, { message: 'Bad credentials' })
  const elsewhere = fake.redirects.get(path.replace(/^\/repos/, ''))
  if (elsewhere !== undefined) return void response.writeHead(301, { location: elsewhere }).end()
  const known = fake.answers.get(path.replace(/^\/repos/, ''))
  const body: unknown =
    typeof known === 'function' ? (known as (query: URLSearchParams) => unknown)(url.searchParams) : known
  if (body === undefined) send(404, { message: 'Not Found' })
  else send(200, body)
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  return text
}

async function answerApp(
  app: NonNullable<FakeGithub['app']>,
  { path, bearer, send }: { path: string; bearer: string; send: (status: number, body: unknown) => void },
): Promise<void> {
  const { payload } = await jwtVerify(bearer, app.key, { issuer: app.id, algorithms: ['RS256'] })
  if ((payload.exp ?? 0) - (payload.iat ?? 0) > 600) return send(401, { message: 'the token lasts too long' })
  const repo = /^\/repos\/([^/]+\/[^/]+)\/installation$/.exec(path)?.[1]
  if (repo !== undefined) return app.installed.has(repo) ? send(200, { id: 7 }) : send(404, { message: 'Not Found' })
  app.minted++
  send(201, { token: 'ghp_loopback', expires_at: new Date(Date.now() + app.lastsMs).toISOString() })
}

/** A delivery as GitHub sends it. */
export async function deliver(
  serverUrl: string,
  delivery: { event: string; payload: unknown; secret?: string; id?: string; headers?: Record<string, string> },
): Promise<{ status: number; body: { status?: string; error?: { code: string } } }> {
  const body = typeof delivery.payload === 'string' ? delivery.payload : JSON.stringify(delivery.payload)
  const signature = createHmac('sha256', delivery.secret ?? webhookSecret)
    .update(body)
    .digest('hex')
  const response = await fetch(`${serverUrl}/integrations/github/webhook`, {
    method: 'POST',
    body,
    headers: {
      'content-type': 'application/json',
      'x-github-event': delivery.event,
      'x-github-delivery': delivery.id ?? crypto.randomUUID(),
      'x-hub-signature-256': `sha256=${signature}`,
      ...delivery.headers,
    },
  })
  return { status: response.status, body: (await response.json()) as { status?: string } }
}

const time = '2026-01-02T03:04:05Z'

export interface PullOptions {
  number?: number
  title?: string
  body?: string
  branch?: string
  base?: string
  sha?: string
  state?: 'open' | 'closed'
  merged?: boolean
  draft?: boolean
  /** The id of the repository that it comes from; without it, it is a branch of the repository itself. */
  fork?: number
  association?: string
}

export const sha = (letter: string): string => letter.repeat(40)

/** A pull request as the REST API and payloads show it. */
export function pullOf(repo: string, options: PullOptions = {}) {
  const { number = 1, merged = false } = options
  return {
    number,
    html_url: `http://127.0.0.1/${repo}/pull/${number}`,
    title: options.title ?? 'A change',
    body: options.body ?? null,
    state: merged ? 'closed' : (options.state ?? 'open'),
    draft: options.draft ?? false,
    merged,
    merge_commit_sha: merged ? sha('f') : null,
    user: { login: 'octocat', type: 'User' },
    author_association: options.association ?? 'NONE',
    head: { ref: options.branch ?? 'feature', sha: options.sha ?? sha('a'), repo: { id: options.fork ?? 1 } },
    base: { ref: options.base ?? 'main', repo: { id: 1 } },
    mergeable: true,
    commits: 2,
    changed_files: 3,
    additions: 10,
    deletions: 4,
    created_at: time,
    updated_at: time,
    closed_at: merged ? time : null,
    merged_at: merged ? time : null,
  }
}

export const repositoryOf = (repo: string) => ({ full_name: repo, default_branch: 'main' })

export const mergedPayload = (repo: string, options: PullOptions = {}) => ({
  action: 'closed',
  repository: repositoryOf(repo),
  pull_request: pullOf(repo, { ...options, merged: true }),
})
