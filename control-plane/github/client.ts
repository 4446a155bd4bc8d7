import { withCertificateTrouble } from '../../shared/lib/certificate-trouble.ts'
import { createPrivateKey, type KeyObject } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { SignJWT } from 'jose'
import { z } from 'zod'
import type { World } from '../../shared/lib/world.ts'
import { readAnswer } from '../../shared/lib/read-answer.ts'
import { ConfigError } from '../process/config-error.ts'
import { repositoryHost, type GithubSettings } from './settings.ts'

/**
 * A small client of GitHub's REST API: reads JSON by the caller's schema, with limits of time and size. It works with a
 * token, or as a GitHub App by the installation that covers the repository.
 */
export interface GithubClient {
  /** The host of repositories' addresses. */
  readonly host: string
  /** Returns null when there is nothing, or nothing that this server may see. Fails with GithubTrouble. */
  get<T extends z.ZodType>(repo: string, path: string, schema: T): Promise<z.output<T> | null>
  /**
   * Returns the token with which git fetches from the repository and pushes to it; an app's is for this repository alone, and for an hour.
   * null: this server may not see it. Fails with GithubTrouble.
   */
  gitToken(repo: string): Promise<string | null>
}

/** GitHub cannot be reached, refuses, or sends an answer that does not fit. */
export class GithubTrouble extends Error {
  override name = 'GithubTrouble'
}

const timeoutMs = 10_000
const maxHops = 3
const replyBytes = 8 * 1024 * 1024

/**
 * Returns null when the operator gave no credentials. Fails with ConfigError when the key of the app cannot be read.
 */
export function createGithubClient(settings: GithubSettings, world: World): GithubClient | null {
  const { auth, apiUrl } = settings
  if (auth === null) return null
  const own = auth.kind === 'token' ? () => Promise.resolve(auth.token) : null
  const app = auth.kind === 'token' ? null : { ...auth, apiUrl, key: readKey(auth.keyFile) }
  const tokenFor = own ?? installationTokens(app!, world)
  const gitTokenFor = own ?? installationTokens({ ...app!, asks: onlyContents }, world)
  return {
    host: repositoryHost(apiUrl),
    async get(repo, path, schema) {
      checkRepo(repo)
      const token = await tokenFor(repo)
      if (token === null) return null
      return read(await send(`${apiUrl}/repos/${repo}${path}`, { token, method: 'GET' }), schema)
    },
    async gitToken(repo) {
      checkRepo(repo)
      return gitTokenFor(repo)
    },
  }
}

const repoName = /^[A-Za-z0-9][\w-]{0,99}\/[\w.-]{1,100}$/
function checkRepo(repo: string): void {
  if (!repoName.test(repo) || /\/\.{1,2}$/.test(repo)) throw new GithubTrouble('this is not the name of a repository')
}

interface Sent {
  status: number
  text: string
}

async function send(
  url: string,
  { token, method, body }: { token: string; method: 'GET' | 'POST'; body?: unknown },
): Promise<Sent> {
  const signal = AbortSignal.timeout(timeoutMs)
  try {
    let at = url
    for (let hops = 0; ; hops++) {
      const response = await fetch(at, {
        method,
        headers: {
          accept: 'application/vnd.github+json',
          authorization: `Bearer ${token}`,
          'user-agent': 'svc-server',
          'x-github-api-version': '2022-11-28',
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        redirect: 'manual',
        signal,
      })
      const text = await readText(response)
      const next = method === 'GET' ? placeAfter(response, at) : null
      if (next === null) return { status: response.status, text }
      if (hops >= maxHops) throw new GithubTrouble('GitHub redirects without an end')
      at = next
    }
  } catch (error) {
    if (error instanceof GithubTrouble) throw error
    throw new GithubTrouble(withCertificateTrouble('GitHub could not be reached', error), { cause: error })
  }
}

/**
 * The address of a redirect, as GitHub sends for renamed repositories, or null. Only redirects to the API itself are
 * followed.
 */
function placeAfter(response: Response, at: string): string | null {
  if (![301, 302, 307, 308].includes(response.status)) return null
  const location = response.headers.get('location')
  const next = location === null ? null : URL.parse(location, at)
  if (next?.origin !== new URL(at).origin) throw new GithubTrouble('GitHub redirects to another server')
  return next.href
}

const tooLarge = () => new GithubTrouble('the answer of GitHub is too large')
const readText = async (response: Response): Promise<string> =>
  (await readAnswer(response, replyBytes, tooLarge)).toString('utf8')

/** GitHub answers 404 for everything that this server may not see. */
function read<T extends z.ZodType>({ status, text }: Sent, schema: T): z.output<T> | null {
  if (status === 404 || status === 410) return null
  if (status >= 300) throw new GithubTrouble(`GitHub answered ${status}`)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new GithubTrouble('the answer of GitHub is no JSON', { cause: error })
  }
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  throw new GithubTrouble('the answer of GitHub does not fit', { cause: parsed.error })
}

const installation = z.object({ id: z.number().int() })
const installationToken = z.object({ token: z.string().min(1).max(1000), expires_at: z.string() })

interface Known {
  token: string
  until: number
}
/** The rights that git needs, and nothing of the installation's other repositories. */
const onlyContents = (repo: string) => ({ repositories: [repo.split('/')[1]], permissions: { contents: 'write' } })

/** Number of repositories whose tokens are remembered; beyond it all are forgotten. */
const maxKnown = 1_000

/**
 * Returns tokens of the app's installations, and keeps them while they are valid. null: the app is not installed on the
 * repository.
 */
function installationTokens(
  app: { appId: string; key: KeyObject; apiUrl: string; asks?: (repo: string) => unknown },
  world: World,
): (repo: string) => Promise<string | null> {
  const { key, asks } = app
  const known = new Map<string, Known>()
  return async (repo) => {
    const held = known.get(repo)
    if (held !== undefined && held.until > world.now()) return held.token
    const seconds = Math.floor(world.now() / 1000)
    const jwt = await new SignJWT()
      .setProtectedHeader({ alg: 'RS256' })
      .setIssuer(app.appId)
      // GitHub's clock may be behind, and it accepts ten minutes at most.
      .setIssuedAt(seconds - 60)
      .setExpirationTime(seconds + 540)
      .sign(key)
    const found = read(
      await send(`${app.apiUrl}/repos/${repo}/installation`, { token: jwt, method: 'GET' }),
      installation,
    )
    if (found === null) return null
    const url = `${app.apiUrl}/app/installations/${found.id}/access_tokens`
    const made = read(await send(url, { token: jwt, method: 'POST', body: asks?.(repo) }), installationToken)
    if (made === null) return null
    if (known.size >= maxKnown) known.clear()
    // Replaced a minute early, so that a token does not expire on its way.
    known.set(repo, { token: made.token, until: Date.parse(made.expires_at) - 60_000 })
    return made.token
  }
}

function readKey(file: string): KeyObject {
  try {
    const key = createPrivateKey(readFileSync(file))
    if (key.asymmetricKeyType === 'rsa') return key
  } catch (error) {
    throw new ConfigError(`SVC_GITHUB_APP_KEY_FILE: ${file} cannot be read as a private key.`, { cause: error })
  }
  throw new ConfigError(`SVC_GITHUB_APP_KEY_FILE: ${file} is no RSA key.`)
}
