import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { waitFor } from '../../test/kit/programs.ts'
import { fetchHarness } from '../../test/kit/real-harness.ts'
import { startStubLlm } from '../../test/kit/stub-llm.ts'
import type { Bench, Context } from './context.ts'
import { subjectsAt, type Subject, type Way } from './harness-subjects.ts'
import { atMost, compare, type Result } from './measure.ts'
import { startDevice, startServer } from './stack.ts'

/**
 * From the moment the wake's request is sent to the harness's first request to its model, against the same program started
 * by hand with the same prompt. The model's server is scripted; a door before it tells when a request comes.
 */
export const harness: Bench = {
  name: 'harness',
  about: 'wake to the first request of a real harness to its model, against the harness started by hand',
  async run(context) {
    const stub = await startStubLlm()
    const door = await openDoor(stub.url)
    await stub.script({ run: { steps: [], loop: false } })
    const results: Result[] = []
    try {
      for (const subject of subjectsAt(door.url)) {
        const found = fetchHarness(subject.name)
        if ('missing' in found) context.say(`NOT MEASURED: ${subject.name} is not available here. ${found.missing}`)
        else results.push(...(await measure(context, { subject, door, binDir: found.binDir })))
      }
    } finally {
      door.server.close()
      await stub.stop()
    }
    return results
  },
}

async function measure(
  context: Context,
  { subject, door, binDir }: { subject: Subject; door: Door; binDir: string },
): Promise<Result[]> {
  const { name, ways, startsPerRound } = subject
  const scratch = join(context.scratch, name)
  mkdirSync(scratch)
  subject.settle(scratch)
  const env = { HOME: scratch, PATH: `${binDir}:${process.env['PATH'] ?? ''}`, ...subject.env }
  const profile = Object.entries(env).map(([key, value]) => `export ${key}='${value}'\n`)
  writeFileSync(join(scratch, '.profile'), profile.join(''))
  const server = await startServer({ ...context, scratch }, { name: `harness-${name}` })
  const device = await startDevice({ ...context, scratch }, { server, name: `harness-${name}-device` })
  const agent = await server.call<{ id: string }>('POST', '/agents', { name: 'Worker', harness: name })
  const woken = async () => {
    await device.whenWarm()
    const asked = door.next()
    const sentAt = performance.now()
    const { runPublicId } = await server.call<{ runPublicId: string }>('POST', `/agents/${agent.id}/runs`, {
      prompt: 'Go.',
    })
    const ms = (await asked) - sentAt
    await waitFor(
      async () => (await server.call<{ status: string }>('GET', `/runs/${runPublicId}`)).status === 'succeeded',
      'the run ended',
      { everyMs: 100 },
    )
    return ms
  }
  const handHome = subject.isApart ? join(scratch, 'by-hand') : scratch
  mkdirSync(handHome, { recursive: true })
  if (subject.isApart) subject.settle(handHome)
  const started = async (way: Way) => {
    const asked = door.next()
    const sentAt = performance.now()
    const child = way.start({ file: join(binDir, name), cwd: handHome, env: { ...env, HOME: handHome } })
    const left = once(child, 'exit')
    const ms = (await asked) - sentAt
    await left
    return ms
  }
  const several = async (one: () => Promise<number>) => {
    const samples: number[] = []
    for (let i = 0; i < startsPerRound; i++) samples.push(await one())
    return samples
  }
  try {
    // Once before: what a program writes at its first start is there, and what is compiled at the first use is compiled.
    for (const way of ways) await started(way)
    await woken()
    const results: Result[] = []
    for (const way of ways) {
      results.push(
        await compare({
          name: `wake to first request, ${name}`,
          unit: 'ms',
          peerIs: way.label,
          ...(way.isGoal && { target: atMost(1.15) }),
          rounds: context.rounds,
          ours: () => several(woken),
          peer: () => several(() => started(way)),
        }),
      )
    }
    return results
  } finally {
    await device.end()
    await server.end()
  }
}

interface Door {
  server: Server
  url: string
  /** `performance.now()` when the next request for an answer came. */
  next(): Promise<number>
}

/**
 * Hands every request on to the model's server. Only what the agent itself asks counts, which names its tools: a harness
 * may ask for a title of the session first, which svc gives it.
 */
async function openDoor(target: string): Promise<Door> {
  let arrived: (at: number) => void = () => {}
  const server = createServer((incoming, reply) => {
    const at = performance.now()
    const body: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => body.push(chunk))
    incoming.on('end', () => isAgents(Buffer.concat(body)) && arrived(at))
    const { method, headers } = incoming
    const onward = request(new URL(incoming.url ?? '/', target), { method: method ?? 'GET', headers }, (answer) => {
      reply.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(reply)
    })
    onward.on('error', () => reply.destroy())
    incoming.pipe(onward)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    server,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    next: () => new Promise((resolve) => (arrived = resolve)),
  }
}

function isAgents(body: Buffer): boolean {
  if (body.length === 0) return false
  const { tools = [] } = JSON.parse(body.toString('utf8')) as { tools?: unknown[] }
  return tools.length > 0
}
