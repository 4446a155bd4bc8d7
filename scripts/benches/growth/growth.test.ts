import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { contract } from '../../../shared/api/index.ts'
import type { AnyRoute } from '../../../shared/api/route.ts'
import { goodRequests, makeThings } from '../../../test/api/contract/collected.ts'
import { asked, fill, isUnavailable } from '../../../test/api/contract/every-route.ts'
import { Stage } from '../../../test/api/contract/stage.ts'
import { hasPostgres } from '../../../test/kit/database.ts'
import { enrol } from '../../../test/kit/fake-device.ts'
import type { Person } from '../../../test/kit/server.ts'
import { task as makeTask } from '../../../test/api/resources/tasks-kit.ts'
import { growRows } from '../../../test/process/plans/grow.ts'
import type { Counts } from '../../../test/process/plans/growth.ts'
import { atMost, compare, type Result } from '../measure.ts'
import { Asker, type Request } from './asker.ts'
import { longestHold } from './holds.ts'
import { ownMs, postgresMs } from './processor-time.ts'

// Run by `scripts/bench growth`, with a file for what it finds.

/** The tasks of the small one. */
const few = 50
const many: Counts = {
  agents: 60,
  projects: 40,
  tasks: 20_000,
  runs: 200_000,
  conversations: 5_000,
  messages: 50_000,
  files: 20_000,
  pages: 5_000,
  learnings: 5_000,
  automations: 100,
  workflowRuns: 4_000,
}
const devices = 200
const idleMs = 20_000
const file = process.env['SVC_BENCH_RESULTS'] ?? ''
const rounds = Number(process.env['SVC_BENCH_ROUNDS'] ?? 5)
/** A route's processor time, large to small. */
const goal = 1.5

/** Reads that cost more the more there is, each with its reason. */
const counting: ReadonlyMap<string, string> = new Map([
  ['workspaces.stats', 'it answers how many there are of each, counted in indexes'],
  ['wiki.embeddingStatus', 'it answers how many pages wait for a vector'],
])

const routes: readonly AnyRoute[] = contract
const results: Result[] = []
const notes: string[] = []
const asker = new Asker()
afterAll(async () => {
  await asker.end()
  writeFileSync(file, JSON.stringify({ results, notes }))
})

/** What is usually written. Each request is made anew, with what it needs. */
const writes = [
  'tasks.create',
  'tasks.update',
  'tasks.comments.create',
  'conversations.messages.create',
  'agents.runs.start',
  'agents.update',
  'wiki.pages.create',
  'files.create',
]

describe.each(['sqlite', 'postgres'] as const)('%s', (database) => {
  const isThere = database === 'sqlite' || hasPostgres()
  /** Calls in one round: a call on PostgreSQL is measured by what its processes had, which is coarse. */
  const calls = 25
  const folder = mkdtempSync(join(tmpdir(), 'svc-growth-'))
  let small: Grown
  let large: Grown

  beforeAll(async () => {
    if (!isThere) return
    small = await Grown.make(database, join(folder, 'small.db'), null)
    const began = performance.now()
    large = await Grown.make(database, join(folder, 'large.db'), many)
    notes.push(`${database}: the large one was made in ${Math.round((performance.now() - began) / 1_000)} s`)
  }, 600_000)
  afterAll(async () => {
    await small?.stage.stop()
    await large?.stage.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  it.skipIf(!isThere)('reads', { timeout: 1_800_000 }, async () => {
    for (const route of routes) {
      if (route.method !== 'GET' || isUnavailable(route) || route.base !== '/api/v1') continue
      const [of, against] = [await large.read(route), await small.read(route)]
      if (of === null || against === null) {
        notes.push(`${database}: ${route.id} is not asked`)
        continue
      }
      await measure(
        route.id,
        () => repeated(of, calls),
        () => repeated(against, calls),
      )
    }
  })

  it.skipIf(!isThere)('writes', { timeout: 1_800_000 }, async () => {
    for (const id of writes) {
      const route = routes.find((each) => each.id === id)
      if (route === undefined) throw new Error(`the contract has no ${id}`)
      await measure(
        id,
        () => large.writes(route, calls),
        () => small.writes(route, calls),
      )
    }
  })

  it.skipIf(!isThere)('idle', { timeout: 600_000 }, async () => {
    const samples = async (grown: Grown) => {
      await grown.link()
      await sleep(2_000)
      const before = ownMs() + postgresMs()
      await sleep(idleMs)
      return [((ownMs() + postgresMs() - before) / idleMs) * 1_000]
    }
    // The other one's sweeps go on in the same thread, so each is measured beside it.
    await small.rest()
    const ours = await samples(large)
    await large.unlink()
    await large.rest()
    await small.wake()
    const peer = await samples(small)
    await small.unlink()
    await large.wake()
    results.push(
      await compare({
        name: `${database}: idle with ${devices} devices`,
        unit: 'ms/s',
        peerIs: 'small',
        rounds: 1,
        ours: async () => ours,
        peer: async () => peer,
      }),
    )
  })

  it.skipIf(!isThere)('export and removal', { timeout: 1_200_000 }, async () => {
    for (const [what, work] of [
      ['export', () => large.exported()],
      ['removal', () => large.removed()],
    ] as const) {
      const began = performance.now()
      let hold = Number.NaN
      const slowest = await large.besides(async () => {
        hold = await longestHold(work)
      })
      notes.push(
        `${database}: ${what} took ${Math.round(performance.now() - began)} ms; the slowest request of another workspace ${Math.round(slowest)} ms`,
      )
      results.push(
        await compare({
          name: `${database}: longest hold of the loop, ${what}`,
          unit: 'ms',
          peerIs: 'allowed',
          target: atMost(1),
          rounds: 1,
          ours: async () => [hold],
          peer: async () => [50],
        }),
      )
    }
  })

  async function measure(name: string, ours: () => Promise<Request[]>, peer: () => Promise<Request[]>): Promise<void> {
    const sizes = new Map<unknown, number>()
    const cost = async (make: () => Promise<Request[]>) => {
      const requests = await make()
      const before = ownMs() + postgresMs()
      const answers = await asker.ask(requests)
      const spent = ownMs() + postgresMs() - before
      const wrong = answers.find(({ status }) => status >= 400)
      if (wrong !== undefined) throw new Error(`${name} answered ${wrong.status}`)
      sizes.set(make, answers[0]!.bytes)
      return [spent / requests.length]
    }
    try {
      await cost(ours)
      await cost(peer)
      const [longer, shorter] = [sizes.get(ours)!, sizes.get(peer)!]
      // What a call costs may depend on its answer.
      const isLonger = longer > shorter * 1.2 + 200
      const reason = isLonger ? `its answer has ${longer} bytes, the other ${shorter}` : counting.get(name)
      results.push(
        await compare({
          goal: 21,
          name: `${database}: ${name}`,
          unit: 'ms',
          peerIs: 'small',
          ...(reason === undefined ? { target: atMost(goal) } : { note: () => reason }),
          rounds,
          ours: () => cost(ours),
          peer: () => cost(peer),
        }),
      )
    } catch (error) {
      notes.push(`${database}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
})

const repeated = async (request: Request, count: number) => Array.from({ length: count }, () => request)
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** A server whose workspace has grown so, and another workspace on it. */
class Grown {
  readonly stage: Stage
  private readonly things: Readonly<Record<string, string>>
  private readonly stranger: Person
  private links: Worker | null = null

  static async make(database: 'sqlite' | 'postgres', path: string, counts: Counts | null): Promise<Grown> {
    // Its rows are made by statements that take longer than any of the server's.
    const settings = {
      SVC_CHECK_REPLIES: '0',
      SVC_RATE_LIMIT_PER_MINUTE: '100000000',
      SVC_READ_TIMEOUT_MS: '300000',
      SVC_WRITE_TIMEOUT_MS: '300000',
    }
    const stage = await Stage.start({ settings, ...(database === 'sqlite' ? { file: path } : { database }) })
    const { server, owner, member, live } = stage
    const agentId = await stage.agent()
    const things = await makeThings({ server, person: owner, agentId, colleague: member, liveRunId: live.runId })
    const stranger = await stage.stranger()
    const grown = new Grown({ stage, things, stranger })
    // Each table needs a row like which others are made.
    for (const route of routes) {
      const request = await grown.good(route).catch(() => null)
      if (request !== null) await asker.ask([request])
    }
    const { root } = server.database
    if (counts !== null) await growRows(root, { workspaceId: owner.workspaceId, elsewhere: owner.workspaceId, counts })
    else for (let made = 0; made < few; made++) await makeTask(server, {})
    if (database === 'postgres') await root.raw('analyze')
    await server.plane.sweeper.runAll()
    return grown
  }

  private constructor(parts: { stage: Stage; things: Readonly<Record<string, string>>; stranger: Person }) {
    this.stage = parts.stage
    this.things = parts.things
    this.stranger = parts.stranger
  }

  /** A request that is answered; null: it is none of this stage. */
  async read(route: AnyRoute): Promise<Request | null> {
    const request = await this.good(route)
    if (request === null) return null
    const [answer] = await asker.ask([request])
    return answer!.status < 400 ? request : null
  }

  async writes(route: AnyRoute, count: number): Promise<Request[]> {
    const made: Request[] = []
    while (made.length < count) made.push((await this.good(route))!)
    return made
  }

  private async good(route: AnyRoute): Promise<Request | null> {
    const good = await goodRequests[route.id]?.(this.stage)
    if (good === undefined) return null
    const { server, owner } = this.stage
    const path = asked(fill(route.path, { ...this.things, ...good.params }), good.query)
    const token = good.token === undefined ? owner.token : good.token
    return {
      url: `${server.plane.localUrl}${route.base}${path}`,
      method: route.method,
      headers: {
        'idempotency-key': crypto.randomUUID(),
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(good.body === undefined ? {} : { 'content-type': 'application/json' }),
        ...good.headers,
      },
      ...(good.body === undefined ? {} : { body: JSON.stringify(good.body) }),
    }
  }

  async link(): Promise<void> {
    const { server } = this.stage
    const url = `${server.plane.localUrl.replace('http', 'ws')}/api/device/link`
    const identities = []
    for (let made = 0; made < devices; made++) {
      const { publicId, token } = await enrol(server)
      identities.push({ url, publicId, token })
    }
    this.links = new Worker(new URL('links.mjs', import.meta.url), { workerData: identities })
    const said = await new Promise((resolve) => this.links!.once('message', resolve))
    if (said !== 'open') throw new Error(String(said))
  }

  async unlink(): Promise<void> {
    await this.links?.terminate()
    this.links = null
  }

  /** Its sweeps stop, and begin again. */
  async rest(): Promise<void> {
    await this.stage.server.plane.sweeper.stop()
  }
  async wake(): Promise<void> {
    this.stage.server.plane.sweeper.start()
  }

  async exported(): Promise<void> {
    await this.must('POST', `/workspaces/${this.stage.owner.workspaceId}/export`)
  }

  /** Until all its rows are gone. */
  async removed(): Promise<void> {
    const { server, owner } = this.stage
    const { name } = await server.ok('/workspaces')
    await this.must('DELETE', `/workspaces/${owner.workspaceId}`, { confirmName: name })
    const { root } = server.database
    while ((await root('runs').where({ workspace_id: owner.workspaceId }).first('id')) !== undefined) await sleep(200)
  }

  private async must(method: string, path: string, body?: object): Promise<void> {
    const { server, owner } = this.stage
    const headers = {
      authorization: `Bearer ${owner.token}`,
      'idempotency-key': crypto.randomUUID(),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    }
    const request = { url: `${server.plane.localUrl}/api/v1${path}`, method, headers }
    const [answer] = await asker.ask([{ ...request, ...(body !== undefined && { body: JSON.stringify(body) }) }])
    if (answer!.status >= 400) throw new Error(`${method} ${path} answered ${answer!.status}`)
  }

  /** The slowest answer that somebody of another workspace gets meanwhile, in milliseconds. */
  async besides(work: () => Promise<void>): Promise<number> {
    const other = new Asker()
    const { server } = this.stage
    const headers = { authorization: `Bearer ${this.stranger.token}` }
    const over = new AbortController()
    let slowest = 0
    const asking = (async () => {
      while (!over.signal.aborted) {
        const began = performance.now()
        await other.ask([{ url: `${server.plane.localUrl}/api/v1/agents`, method: 'GET', headers }])
        slowest = Math.max(slowest, performance.now() - began)
        await sleep(10)
      }
    })()
    try {
      await work()
    } finally {
      over.abort()
      await asking
      await other.end()
    }
    return slowest
  }
}
