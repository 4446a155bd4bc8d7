import type { Agent } from '../../shared/api/agents.ts'
import type { StartRunReply } from '../../shared/api/agent-runs.ts'
import type { Device } from '../../shared/api/devices.ts'
import type { Folder } from '../../shared/api/folders.ts'
import type { RunEvent } from '../../shared/api/run-events.ts'
import type { RunChangeSet } from '../../shared/api/run-records.ts'
import type { RunDetail } from '../../shared/api/runs.ts'
import { Hopeless, waitFor } from './programs.ts'

/** A client of the REST API, as a person with a login token has it. */
export class TestApi {
  readonly #where: () => { url: string; token: string }

  constructor(where: () => { url: string; token: string }) {
    this.#where = where
  }

  async call<Reply>(method: string, path: string, body?: unknown): Promise<Reply> {
    const answer = await this.raw(method, path, { body })
    if (answer.status >= 400) throw new ApiFailure(`${method} ${path}`, answer.status, answer.body)
    return answer.body as Reply
  }

  /** A write that is sent again under one key until the server has taken it, however often it goes away meanwhile. */
  async insist<Reply extends object>(path: string, body: unknown = {}): Promise<Reply> {
    const headers = { 'idempotency-key': crypto.randomUUID() }
    return waitFor(
      async () => {
        const answer = await this.raw('POST', path, { body, headers })
        if (answer.status >= 500) return null
        if (answer.status >= 400) throw new Hopeless(`POST ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
        return answer.body as Reply
      },
      `POST ${path} is taken`,
      { everyMs: 100 },
    )
  }

  async raw(
    method: string,
    path: string,
    { body, headers }: { body?: unknown; headers?: Record<string, string> } = {},
  ): Promise<{ status: number; body: unknown }> {
    const { url, token } = this.#where()
    const response = await fetch(`${url}${path.startsWith('/api/') ? '' : '/api/v1'}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, body: text === '' ? undefined : JSON.parse(text) }
  }

  createAgent(agent: Record<string, unknown>): Promise<Agent> {
    return this.call('POST', '/agents', agent)
  }
  addFolder(folder: { displayName: string; rootPath: string; deviceId: string }): Promise<Folder> {
    return this.call('POST', '/folders', folder)
  }
  async devices(): Promise<Device[]> {
    return (await this.call<{ devices: Device[] }>('GET', '/devices')).devices
  }

  /** With a key, a wake that is sent again is the same one. */
  async startRun(agentId: string, prompt = 'Do it.', idempotencyKey?: string): Promise<string> {
    const body = { prompt, ...(idempotencyKey === undefined ? {} : { idempotencyKey }) }
    const reply = await this.call<StartRunReply>('POST', `/agents/${agentId}/runs`, body)
    if (reply.kind !== 'queued' && reply.kind !== 'pending') throw new Error(`not started: ${JSON.stringify(reply)}`)
    return reply.runPublicId
  }
  run(runId: string, query = ''): Promise<RunDetail> {
    return this.call('GET', `/runs/${runId}${query}`)
  }
  cancel(runId: string, reason?: string): Promise<RunDetail> {
    return this.call('POST', `/runs/${runId}/cancel`, reason === undefined ? {} : { reason })
  }
  async retry(runId: string): Promise<string> {
    return (await this.call<{ runId: string }>('POST', `/runs/${runId}/retry`, {})).runId
  }
  changeSet(runId: string): Promise<RunChangeSet> {
    return this.call('GET', `/runs/${runId}/change-set`)
  }

  /** Waits until the run is in `status`; fails at once when it ends as something else. */
  async waitForRun(runId: string, status: RunDetail['status'], ms = 60_000): Promise<RunDetail> {
    let last: RunDetail | null = null
    const about = () => JSON.stringify(last, null, 1)
    const found = await waitFor(
      async () => {
        last = await this.run(runId)
        const hasEnded = ['succeeded', 'failed', 'cancelled'].includes(last.status)
        return last.status === status || hasEnded ? last : null
      },
      `${runId} is ${status}`,
      { ms, atMostMs: 250, about },
    )
    if (found.status !== status) throw new Error(`${runId} is ${found.status}, not ${status}: ${about()}`)
    return found
  }

  /** All events stored so far, page by page. */
  async events(runId: string, pageSize = 500): Promise<RunEvent[]> {
    const all: RunEvent[] = []
    for (let after: string | null = ''; after !== null;) {
      const query: string = after === '' ? '' : `&after=${encodeURIComponent(after)}`
      const page: { data: RunEvent[]; hasMore: boolean; nextCursor: string | null } = await this.call(
        'GET',
        `/runs/${runId}/events?limit=${pageSize}${query}`,
      )
      all.push(...page.data)
      after = page.hasMore ? page.nextCursor : null
    }
    return all
  }

  /** Follows the run over SSE to its end; `onEvent` sees each event as it comes. Ends early when `signal` says so. */
  async follow(
    runId: string,
    {
      onEvent,
      lastEventId,
      signal,
    }: { onEvent?: (event: RunEvent) => void; lastEventId?: string; signal?: AbortSignal } = {},
  ): Promise<{ events: RunEvent[]; lastEventId: string | null }> {
    const { url, token } = this.#where()
    const response = await fetch(`${url}/api/v1/runs/${runId}/events`, {
      headers: {
        authorization: `Bearer ${token}`,
        accept: 'text/event-stream',
        ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
      },
      ...(signal === undefined ? {} : { signal }),
    })
    if (!response.ok || response.body === null) throw new ApiFailure('follow', response.status, await response.text())
    const events: RunEvent[] = []
    let seen = lastEventId ?? null
    let text = ''
    try {
      for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
        const messages = (text + chunk).split('\n\n')
        text = messages.pop() ?? ''
        for (const message of messages) {
          const { id, data } = parseMessage(message)
          if (id !== null) seen = id
          if (data === null) continue
          const event = JSON.parse(data) as RunEvent
          // The stream's own last message is no event of the run.
          if (event.object !== 'run_event') continue
          events.push(event)
          onEvent?.(event)
        }
      }
    } catch (error) {
      // The server went away; what came is kept, and the caller goes on from there.
      if (!(error instanceof TypeError || signal?.aborted)) throw error
    }
    return { events, lastEventId: seen }
  }
}

export class ApiFailure extends Error {
  readonly status: number
  readonly body: unknown
  constructor(what: string, status: number, body: unknown) {
    super(`${what} answered ${status}: ${JSON.stringify(body)}`)
    this.status = status
    this.body = body
  }
}

function parseMessage(message: string): { id: string | null; data: string | null } {
  const fields = message.split('\n').map((line) => /^(\w+): ?(.*)$/.exec(line))
  const field = (name: string) => {
    const values = fields.flatMap((match) => (match?.[1] === name ? [match[2] ?? ''] : []))
    return values.length === 0 ? null : values.join('\n')
  }
  return { id: field('id'), data: field('data') }
}
