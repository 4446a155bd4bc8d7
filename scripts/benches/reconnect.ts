import { Agent } from 'node:http'
import { WebSocket } from 'ws'
import type { EnrolReply } from '../../shared/device/control.ts'
import type { Bench } from './context.ts'
import { openLink } from './device-socket.ts'
import { atMost, compare, quantile, statOf, type Result } from './measure.ts'
import { startPeer } from './peers.ts'
import { ask, enrol, startServer, type BenchServer } from './stack.ts'
import { size } from './sizes.ts'

/** Devices that connect at a time: without the jitter of real ones, so that the server is what is measured. */
const width = size(500, 20)

export const reconnect: Bench = {
  name: 'reconnect',
  about: `devices that connect, ${width} at a time (1,000; 10,000 with --large), against bare WebSockets`,
  async run(context) {
    const count = context.large ? 10_000 : size(1_000, 40)
    const server = await startServer(context, { name: 'reconnect' })
    const peer = await startPeer('echo')
    context.say(`${count.toLocaleString('en')} devices are enrolled`)
    const identities: EnrolReply[] = []
    for (let at = 0; at < count; at += 10)
      identities.push(...(await Promise.all(Array.from({ length: 10 }, (_, i) => enrol(server, `device-${at + i}`)))))
    const latencies = { idle: await readsWhile(server, waitMs(1_000)), busy: [] as number[] }
    try {
      const connected = await compare({
        goal: 11,
        name: `${count.toLocaleString('en')} devices connect, to the last welcome`,
        unit: 'ms',
        peerIs: 'bare accepts',
        target: atMost(2),
        rounds: context.rounds,
        async ours() {
          const start = performance.now()
          const links = inTurn(identities, (identity) => openLink(server, identity))
          const duration = links.then(() => performance.now() - start)
          latencies.busy.push(...(await readsWhile(server, duration)))
          await Promise.all((await links).map((link) => link.close()))
          return [await duration]
        },
        async peer() {
          const start = performance.now()
          const sockets = await inTurn(identities, () => echoed(peer.port))
          const duration = performance.now() - start
          for (const socket of sockets) socket.terminate()
          return [duration]
        },
      })
      return [connected, disturbance(latencies)]
    } finally {
      await peer.end()
      await server.end()
    }
  },
}

async function inTurn<Item, Result>(items: readonly Item[], work: (item: Item) => Promise<Result>): Promise<Result[]> {
  const left = items.values()
  const results: Result[] = []
  const worker = async () => {
    for (const item of left) results.push(await work(item))
  }
  await Promise.all(Array.from({ length: width }, worker))
  return results
}

const waitMs = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

function disturbance({ idle, busy }: { idle: readonly number[]; busy: readonly number[] }): Result {
  const ratio = quantile(busy, 0.99) / quantile(idle, 0.99)
  const [ours, peer] = [statOf(busy), statOf(idle)]
  return {
    goal: 11,
    name: 'GET /runs while they connect, p99',
    unit: 'ms',
    ours,
    peerIs: 'idle',
    peer,
    ratio,
    ratioP95: ours.p95 / peer.p95,
    target: atMost(5),
    met: ratio <= 5,
  }
}

/** One after another, for as long as it takes. */
async function readsWhile(server: BenchServer, work: Promise<unknown>): Promise<number[]> {
  const state = { isDone: false }
  const done = work.finally(() => (state.isDone = true))
  const agent = new Agent({ keepAlive: true })
  const samples: number[] = []
  while (!state.isDone) {
    const start = performance.now()
    const url = `${server.url}/api/v1/runs?limit=20`
    const { status, text } = await ask({ agent, url, method: 'GET', token: server.token })
    if (status !== 200) throw new Error(`${url} answered ${status}: ${text}`)
    samples.push(performance.now() - start)
  }
  agent.destroy()
  await done
  return samples
}

/** As long a first message as a device's, and its answer. */
async function echoed(port: number): Promise<WebSocket> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}`, { perMessageDeflate: false })
  await new Promise((resolve, reject) => {
    socket.once('error', reject)
    socket.once('open', () => socket.send(JSON.stringify({ type: 'hello', filler: 'x'.repeat(400) })))
    socket.once('message', resolve)
  })
  return socket
}
