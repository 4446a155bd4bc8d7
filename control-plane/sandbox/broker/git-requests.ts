import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { pipeline, Readable } from 'node:stream'
import type { World } from '../../../shared/lib/world.ts'
import type { NetworkDecision } from '../../../shared/runs/network.ts'
import type { Outbound } from '../../outbound/outbound.ts'
import { OutboundError } from '../../outbound/outbound-error.ts'
import type { Log } from '../../process/log.ts'
import { Counted } from './counted.ts'
import { KeyGuard } from './key-guard.ts'
import { endWith, refuseRequest } from './plain-answers.ts'
import { readOwnBranch } from './own-branch.ts'
import { PushRefused, refusedPushReport } from './push-commands.ts'
import { readPush } from './read-push.ts'
import type { RepoCredential, RepoPermit } from './repo-access.ts'

export interface GitRequestLimits {
  /** The bytes of a push, of any other request (`askedBytes`) and of an answer (`answerBytes`). */
  pushBytes: number
  askedBytes: number
  answerBytes: number
  /** The time from a request to the end of its answer. */
  timeMs: number
  /** The requests of one sandbox at once, and in all (`requests`). */
  open: number
  /** The pushes among the open requests: the beginning of each is kept while it is read. */
  openPushes: number
  requests: number
  allPushBytes: number
  allAnswerBytes: number
  /** The bytes that are read of a push that is refused, so that its client hears why. */
  drainedBytes: number
}

const mib = 1024 ** 2
export const gitLimits: GitRequestLimits = {
  pushBytes: 1024 * mib,
  askedBytes: 64 * mib,
  answerBytes: 4 * 1024 * mib,
  timeMs: 30 * 60_000,
  open: 8,
  openPushes: 2,
  requests: 5_000,
  allPushBytes: 4 * 1024 * mib,
  allAnswerBytes: 20 * 1024 * mib,
  drainedBytes: 64 * mib,
}

export interface GitRequestsOptions {
  world: World
  outbound: Pick<Outbound, 'send'>
  log: Log
  limits: GitRequestLimits
}

interface GitRequest {
  request: IncomingMessage
  response: ServerResponse
}

interface GitEndpoint {
  path: string
  service: 'git-upload-pack' | 'git-receive-pack'
  method: 'GET' | 'POST'
}

/** Every request of git by smart HTTP (gitprotocol-http(5)), letter by letter. */
const gitEndpoints: readonly GitEndpoint[] = (['git-upload-pack', 'git-receive-pack'] as const).flatMap((service) => [
  { path: `/info/refs?service=${service}`, service, method: 'GET' as const },
  { path: `/${service}`, service, method: 'POST' as const },
])

/** The reason for which a request is not let through, with the status of the answer. */
class Refusal extends Error {
  override name = 'GitRefusal'
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/**
 * Hands what git asks of the run's repository on to its host, with the credential, which stays out here. A push is read before it is let
 * through: it may move the branches of its run alone, and forward alone.
 */
export class GitRequests {
  private readonly options: GitRequestsOptions
  private open = 0
  private openPushes = 0
  private requests = 0
  /** The branches that git hosts call their own, by the address of the repository. */
  private readonly ownBranches = new Map<string, string | null>()
  private pushLeft: number
  private answerLeft: number

  constructor(options: GitRequestsOptions) {
    this.options = options
    this.pushLeft = options.limits.allPushBytes
    this.answerLeft = options.limits.allAnswerBytes
  }

  /** Resolves when the answer has ended, with what became of it. `target`: what stands behind the path of the repository. */
  async pass(asked: GitRequest & { target: string }, repo: RepoPermit): Promise<NetworkDecision> {
    const { limits, log } = this.options
    const { request, response } = asked
    const endpoint = gitEndpoints.find(({ path, method }) => path === asked.target && method === request.method)
    if (endpoint === undefined)
      return refuseRequest(response, 403, 'The broker of this sandbox lets git fetch and push, and not this.')
    const isPush = endpoint.method === 'POST' && endpoint.service === 'git-receive-pack'
    if (isPush && this.openPushes >= limits.openPushes)
      return refuseRequest(response, 429, 'This sandbox pushes too much at once.')
    if (this.open >= limits.open || this.requests >= limits.requests || this.pushLeft <= 0 || this.answerLeft <= 0)
      return refuseRequest(response, 429, 'This sandbox has asked git for too much.')
    this.open++
    if (isPush) this.openPushes++
    this.requests++
    const ending = new AbortController()
    const cancel = this.options.world.after(limits.timeMs, () =>
      ending.abort(new OutboundError('timed_out', 'it took too long')),
    )
    response.once('close', () => ending.abort(new Error('the sandbox left')))
    ending.signal.addEventListener('abort', () => void request.destroy())
    try {
      const body =
        endpoint.method === 'GET' ? null : await this.bodyOf(asked, { endpoint, repo, signal: ending.signal })
      return await this.exchange(asked, { endpoint, repo, body, ending })
    } catch (error) {
      if (error instanceof PushRefused) return await this.refusePush(asked, error)
      if (error instanceof Refusal) return refuseRequest(response, error.status, error.message)
      const why = error instanceof OutboundError ? error : null
      if (why === null && !ending.signal.aborted) log.warn({ err: error }, 'a git host could not be asked')
      if (why?.reason === 'too_large')
        return refuseRequest(response, 413, 'It is more than the broker of this sandbox takes.')
      endWith(response, 502, `The git host could not be asked: ${why?.message ?? 'the request broke off'}.`)
      return why?.reason === 'refused_address' || why?.reason === 'not_https' ? 'refused' : 'failed'
    } finally {
      cancel()
      this.open--
      if (isPush) this.openPushes--
    }
  }

  /** The body as it is sent on, once it is known to be let through. */
  private async bodyOf(
    { request }: GitRequest,
    { endpoint: { service }, repo, signal }: { endpoint: GitEndpoint; repo: RepoPermit; signal: AbortSignal },
  ): Promise<Readable> {
    const { limits } = this.options
    const isPush = service === 'git-receive-pack'
    const most = isPush ? Math.min(limits.pushBytes, this.pushLeft) : limits.askedBytes
    const { 'content-type': type, 'content-encoding': encoding, 'content-length': length } = request.headers
    if (type !== `application/x-${service}-request`) throw new Refusal(415, 'This is not what git sends.')
    if (Number(length ?? 0) > most) throw new Refusal(413, 'It is more than the broker of this sandbox takes.')
    // A git host would read what was not read here.
    if (encoding !== undefined && (isPush || encoding !== 'gzip')) throw new Refusal(415, 'A push is not to be packed.')
    if (!isPush) return request.pipe(new Counted(most))
    const head = await readPush(request, repo, () => this.ownBranch(repo, signal))
    const counted = new Counted(most, (bytes) => (this.pushLeft -= bytes))
    // A request that breaks off shows at the answer.
    pipeline(Readable.from(joined(head, request), { objectMode: false }), counted, () => undefined)
    return counted
  }

  private async exchange(
    { request, response }: GitRequest,
    {
      endpoint,
      repo,
      body,
      ending,
    }: { endpoint: GitEndpoint; repo: RepoPermit; body: Readable | null; ending: AbortController },
  ): Promise<NetworkDecision> {
    const { outbound, limits, log } = this.options
    const { signal } = ending
    const credential = await credentialOf(repo)
    signal.throwIfAborted()
    const url = urlOf(repo, endpoint)
    body?.once('error', (error) => ending.abort(error))
    const headers = headersTo(url, request, { endpoint, credential })
    const answer = await outbound.send(url, { method: endpoint.method, headers, body }, signal)
    try {
      checkAnswer(answer, endpoint, credential)
    } catch (error) {
      answer.destroy()
      throw error
    }
    response.writeHead(200, { 'content-type': answer.headers['content-type']!, 'cache-control': 'no-cache' })
    const most = Math.min(limits.answerBytes, this.answerLeft)
    const counted = new Counted(most, (bytes) => (this.answerLeft -= bytes))
    const guard =
      credential === null ? [] : [credential.secret, packed(credential)].map((text) => new KeyGuard(text, most))
    return new Promise((resolve) => {
      pipeline([answer, counted, ...guard, response], (error) => {
        if (error) log.debug({ err: error, host: url.host }, 'the answer of a git host broke off')
        resolve(error ? 'failed' : 'allowed')
      })
    })
  }

  /** The run's branch may be named by a task, and what the host calls its own is not always known before. */
  private async ownBranch(repo: RepoPermit, signal: AbortSignal): Promise<string | null> {
    const known = this.ownBranches.get(repo.url)
    if (known !== undefined) return known
    const endpoint = gitEndpoints[0]!
    const credential = await credentialOf(repo)
    const url = urlOf(repo, endpoint)
    const answer = await this.options.outbound.send(
      url,
      { method: endpoint.method, headers: headersTo(url, null, { endpoint, credential }), body: null },
      signal,
    )
    try {
      checkAnswer(answer, endpoint, credential)
      const own = await readOwnBranch(answer)
      this.ownBranches.set(repo.url, own)
      return own
    } finally {
      answer.destroy()
    }
  }

  /** Refuses a push in the words of a git host where the client takes them, so that it says why. */
  private async refusePush({ request, response }: GitRequest, { message, head }: PushRefused): Promise<'refused'> {
    const report = refusedPushReport(head, message)
    let left = this.options.limits.drainedBytes
    for await (const chunk of request.iterator({ destroyOnReturn: false }))
      if ((left -= (chunk as Buffer).length) < 0) break
    if (report === null || left < 0) return refuseRequest(response, 403, message)
    response.writeHead(200, { 'content-type': 'application/x-git-receive-pack-result', connection: 'close' })
    response.end(report)
    return 'refused'
  }
}

const credentialOf = (repo: RepoPermit): Promise<RepoCredential | null> =>
  repo.credential().catch((error: unknown) => {
    throw new Refusal(502, `The credential for the repository could not be had: ${sayOf(error)}.`)
  })

const urlOf = (repo: RepoPermit, { path }: GitEndpoint): URL => new URL(repo.url.replace(/\/+$/, '') + path)

async function* joined(head: Buffer, rest: IncomingMessage): AsyncGenerator<Buffer> {
  yield head
  for await (const chunk of rest) yield chunk as Buffer
}

/** Encodes the credential as the header has it. */
const packed = ({ user, secret }: RepoCredential): string => Buffer.from(`${user}:${secret}`).toString('base64')

function headersTo(
  url: URL,
  request: IncomingMessage | null,
  { endpoint, credential }: { endpoint: GitEndpoint; credential: RepoCredential | null },
): OutgoingHttpHeaders {
  const { 'git-protocol': protocol, 'content-length': length, 'content-encoding': encoding } = request?.headers ?? {}
  return {
    host: url.host,
    'user-agent': 'git/2.39 (svc)',
    accept: '*/*',
    'accept-encoding': 'identity',
    // A push has one protocol alone, which is read here.
    ...(endpoint.service === 'git-upload-pack' &&
      /^version=[012]$/.test(String(protocol)) && { 'git-protocol': protocol }),
    ...(endpoint.method === 'POST' && {
      'content-type': `application/x-${endpoint.service}-request`,
      ...(length !== undefined && { 'content-length': length }),
      ...(encoding !== undefined && { 'content-encoding': encoding }),
    }),
    ...(credential !== null && {
      authorization: `Basic ${packed(credential)}`,
    }),
  }
}

/** A host that sends elsewhere is not followed: whoever it names would be told the credential. */
function checkAnswer(
  answer: IncomingMessage,
  { service, method }: GitEndpoint,
  credential: RepoCredential | null,
): void {
  const { statusCode = 0, headers } = answer
  const as = credential === null ? 'without a credential' : 'with the credential that this run has'
  if (statusCode === 401 || statusCode === 403) throw new Refusal(403, `The git host lets nobody in ${as}.`)
  if (statusCode === 404 || statusCode === 410) throw new Refusal(404, `The git host shows no such repository ${as}.`)
  if (statusCode >= 300 && statusCode < 400)
    throw new Refusal(502, 'The git host has the repository at another address.')
  const type = `application/x-${service}-${method === 'GET' ? 'advertisement' : 'result'}`
  const encoding = headers['content-encoding']?.trim().toLowerCase() ?? 'identity'
  if (statusCode !== 200 || headers['content-type'] !== type || encoding !== 'identity')
    throw new Refusal(502, `The git host did not answer as one does (status ${statusCode}).`)
}

const sayOf = (error: unknown): string => (error instanceof Error ? error.message : 'nobody knows why')
