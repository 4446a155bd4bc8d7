import { Agent, request } from 'node:http'
import { contract } from '../../shared/api/index.ts'
import type { AnyRoute } from '../../shared/api/route.ts'
import { delay } from '../../test/kit/programs.ts'
import type { Bench, Context } from './context.ts'
import { besideLyingDevice } from './lying-device.ts'
import { atMost, compare } from './measure.ts'
import { processFigures, startServer, type BenchServer } from './stack.ts'
import { size } from './sizes.ts'

/**
 * Bodies that cost most, sent to every route that takes one, many at once, while a monitor asks whether the server is
 * well. What is refused costs as well: it was read, parsed and checked before. A device that lies is among the callers.
 */
const atOnce = size(40, 2)
const askEveryMs = 20
/** As many values as a server takes (`http/body.ts`), and as many bytes. */
const values = size(49_000, 4_900)
const objectKeys = size(4_900, 490)
const bytes = size(2 * 1024 * 1024, 64 * 1024) - 4_096
/** The most bytes of the bodies that may be larger. */
const mostBytes = size(72, 1) * 1024 * 1024
const restMs = size(35_000, 500)
const megabyte = 1024 * 1024

export const cost: Bench = {
  name: 'cost',
  about: 'a monitor beside 40 of the costliest bodies at once on every route, and the memory afterwards',
  async run(context) {
    const { waits, before, after } = await besideAll(context)
    waits.sort((a, b) => a - b)
    const median = waits[Math.floor(waits.length / 2)] ?? Number.NaN
    const slowest = waits.at(-1) ?? Number.NaN
    const only = (value: number) => () => Promise.resolve([value])
    const wait = { unit: 'ms', peerIs: 'allowed', rounds: 1, target: atMost(1) }
    return Promise.all([
      compare({ ...wait, name: 'monitor beside costly bodies, median', ours: only(median), peer: only(100) }),
      compare({ ...wait, name: 'monitor beside costly bodies, slowest', ours: only(slowest), peer: only(500) }),
      compare({
        unit: 'MB',
        peerIs: 'before',
        rounds: 1,
        target: atMost(1.5),
        name: 'server after costly bodies',
        ours: only(after / megabyte),
        peer: only(before / megabyte),
      }),
    ])
  },
}

async function besideAll(context: Context) {
  const server = await startServer(context, { name: 'cost' })
  try {
    const routes = targets()
    // What is loaded when it is needed first stays, whoever asks for it.
    for (const route of routes) await sendAll(server, route, 1)
    await besideLyingDevice(server, 1)
    await delay(restMs)
    const before = processFigures(server.program.pid).rssBytes
    const monitor = startMonitor(server)
    for (const route of routes) {
      const from = monitor.waits.length
      await sendAll(server, route, atOnce)
      const slowest = Math.max(0, ...monitor.waits.slice(from))
      if (slowest > 250) context.say(`${route.id}: the monitor waited ${Math.round(slowest)} ms`)
    }
    const from = monitor.waits.length
    await besideLyingDevice(server, atOnce)
    context.say(`beside a lying device the monitor waited ${Math.round(Math.max(0, ...monitor.waits.slice(from)))} ms`)
    const waits = await monitor.stop()
    const busy = processFigures(server.program.pid).rssBytes
    await delay(restMs)
    const after = processFigures(server.program.pid).rssBytes
    context.say(`resident: ${[before, busy, after].map((each) => `${Math.round(each / megabyte)} MB`).join(', ')}`)
    return { waits, before, after }
  } finally {
    await server.end()
  }
}

/** One question after another on a connection of its own. */
function startMonitor(server: BenchServer) {
  const agent = new Agent({ keepAlive: true })
  const waits: number[] = []
  const stopping = new AbortController()
  const watching = (async () => {
    while (!stopping.signal.aborted) {
      const startedAt = performance.now()
      await ask(server, { agent, method: 'GET', path: '/healthz' })
      waits.push(performance.now() - startedAt)
      await delay(askEveryMs)
    }
    agent.destroy()
  })()
  return {
    waits,
    async stop() {
      stopping.abort()
      await watching
      return waits
    },
  }
}

/** What is sent where. */
interface Target {
  id: string
  method: string
  path: string
  bodies: () => Buffer[]
}

function targets(): Target[] {
  const routes = contract.filter(({ method }) => method !== 'GET')
  const targetOf = (route: AnyRoute): Target => ({
    id: route.id,
    method: route.method,
    path: (route.base + route.path).replaceAll(/\{(\w+)\}/g, (_, name: string) => unknownIds[name] ?? 'x'),
    bodies: () => worstBodies(route),
  })
  return [...routes.map(targetOf), { id: 'mcp', method: 'POST', path: '/api/v1/mcp', bodies: largestMessages }]
}

async function sendAll(server: BenchServer, { method, path, ...target }: Target, count: number): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: count })
  const bodies = target.bodies()
  const sends = Array.from({ length: count }, (_, at) =>
    ask(server, { agent, method, path, body: bodies[at % bodies.length]! }),
  )
  await Promise.all(sends)
  agent.destroy()
}

const unknownIds: Readonly<Record<string, string>> = {
  agentId: 'agt_0000000000000000',
  runId: 'run_0000000000000000',
  workspaceId: '00000000-0000-4000-8000-000000000000',
}

/** For each field of the body: many wrong values, many keys, one long text; and the same where no field is. Larger ones where they are taken. */
function worstBodies(route: AnyRoute): Buffer[] {
  if (route.streamed === null && route.bodyLimit > 2 * megabyte)
    return largestBodies(Math.min(mostBytes, route.bodyLimit))
  const names = [...Object.keys((route.body as { shape?: object }).shape ?? {}).slice(0, 12), 'other']
  const many = `[${Array<string>(values).fill('1').join(',')}]`
  const nested = `[${Array<string>(values / 10)
    .fill(`${'['.repeat(9)}${']'.repeat(9)}`)
    .join(',')}]`
  const keys = `[${Array.from({ length: values / objectKeys }, (_, at) => objectOf(at)).join(',')}]`
  const text = JSON.stringify('`a@b.'.repeat(bytes / 5 - 10))
  const kinds = [many, keys, text, nested]
  return names.flatMap((name, at) => [0, 1].map((more) => bodyOf(name, kinds[(2 * at + more) % kinds.length]!)))
}

/** The files of a skill and of a plugin, as text and as base64, and a text that is neither. */
function largestBodies(most: number): Buffer[] {
  const head = { path: 'SKILL.md', content: '---\nname: large\ndescription: Large.\n---\nText.' }
  const contents = [{ content: 'x'.repeat(most - 4_096) }, { contentBase64: 'eHh4'.repeat((most - 4_096) / 4) }]
  const bundles = contents.map((content) => ({ files: [head, { path: 'large.bin', ...content }] }))
  const named = { slug: 'large', name: 'Large' }
  const bodies = bundles.flatMap((bundle) => [{ ...named, bundle }, bundle])
  return [...bodies, { other: contents[0] }].map((body) => Buffer.from(JSON.stringify(body)))
}

/** Calls of a tool of the largest size, for the same and for one that is not there. */
function largestMessages(): Buffer[] {
  const [skill] = largestBodies(Math.min(mostBytes, 24 * megabyte))
  const args = { route: 'skills.create', arguments: JSON.parse(skill!.toString()) as object }
  const calls = [
    { name: 'call_route', arguments: args },
    { name: 'none', arguments: { text: 'x'.repeat(mostBytes - 4_096) } },
  ]
  return calls.map((params) => Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })))
}

/** Of names that no other object has. */
const objectOf = (number: number) =>
  `{${Array.from({ length: objectKeys / 2 }, (_, at) => `"k${number}_${at.toString(36)}":1`).join(',')}}`

const bodyOf = (name: string, json: string) => Buffer.from(`{"${name}":${json}}`)

interface Asked {
  agent: Agent
  method: string
  path: string
  body?: Buffer
}

function ask(server: BenchServer, { agent, method, path, body }: Asked): Promise<number> {
  const headers = {
    authorization: `Bearer ${server.token}`,
    'idempotency-key': crypto.randomUUID(),
    accept: 'application/json, text/event-stream',
    ...(body !== undefined && { 'content-type': 'application/json', 'content-length': body.length }),
  }
  return new Promise((resolve, reject) => {
    const sent = request(new URL(path, server.url), { agent, method, headers }, (response) => {
      response.resume()
      response.on('end', () => resolve(response.statusCode ?? 0))
      response.on('error', reject)
    })
    sent.on('error', reject)
    sent.end(body)
  })
}
