import type { RunId } from '../../shared/lib/ids.ts'
import { createHash } from 'node:crypto'
import { request, type ClientRequest } from 'node:http'
import { WebSocket } from 'ws'
import { encodeFrame } from '../../shared/device/frame.ts'
import type { Bench } from './context.ts'
import { connectDevice, takeRun } from './device-socket.ts'
import { atMost, compare } from './measure.ts'
import { startPeer } from './peers.ts'
import { startServer, type BenchServer } from './stack.ts'
import { size } from './sizes.ts'

const eventsPerRound = size(100, 5)

/** One event at a time, each sent once the one before it was seen. */
export const follow: Bench = {
  name: 'follow',
  about: 'from an event that a device sends to a follower over SSE, against the same bytes over two WebSockets',
  async run(context) {
    const server = await startServer(context, { name: 'follow' })
    const peer = await startPeer('relay')
    const device = await connectDevice(server, 'sender')
    const agent = await server.call<{ id: string }>('POST', '/agents', {
      name: 'Followed',
      harness: 'command',
      command: 'true',
    })
    const { runId, fence } = await takeRun(server, { device, agentId: agent.id })
    const follower = await openFollower(server, runId)
    const bare = await Promise.all([openSocket(peer.port), openSocket(peer.port)])
    let seq = 0
    const frames = (count: number) => Array.from({ length: count }, () => frameOf({ runId, fence }, ++seq))
    const ours = () =>
      timed(frames(eventsPerRound), (frame) => {
        const seen = follower.next()
        device.socket.send(frame)
        return seen
      })
    try {
      await ours()
      return [
        await compare({
          goal: 9,
          name: 'an event to a follower (SQLite)',
          unit: 'ms',
          peerIs: 'two ws hops',
          target: atMost(1.5),
          rounds: context.rounds,
          ours,
          peer: () =>
            timed(
              frames(0).concat(Array.from({ length: eventsPerRound }, () => frameOf({ runId, fence }, 1))),
              (frame) => {
                const seen = new Promise<void>((resolve) => bare[1].once('message', () => resolve()))
                bare[0].send(frame)
                return seen
              },
            ),
        }),
      ]
    } finally {
      follower.end()
      for (const socket of bare) socket.terminate()
      await device.close()
      await peer.end()
      await server.end()
    }
  },
}

async function timed(frames: readonly Uint8Array[], pass: (frame: Uint8Array) => Promise<void>): Promise<number[]> {
  const samples: number[] = []
  for (const frame of frames) {
    const start = performance.now()
    await pass(frame)
    samples.push(performance.now() - start)
  }
  return samples
}

function frameOf(run: { runId: RunId; fence: number }, seq: number): Uint8Array {
  const body = Buffer.from(`{"seq":${seq},"at":1767225600000,"kind":"text","data":{"text":"${'x'.repeat(120)}"}}\n`)
  const sha256 = createHash('sha256').update(body).digest('hex')
  return encodeFrame({ type: 'run.events', ...run, firstSeq: seq, lastSeq: seq, kinds: { text: 1 }, sha256 }, body)
}

interface Follower {
  /** Resolves with the next event. */
  next(): Promise<void>
  end(): void
}

async function openFollower(server: BenchServer, runId: RunId): Promise<Follower> {
  let seen = () => {}
  const sent: ClientRequest = request(`${server.url}/api/v1/runs/${runId}/events`, {
    headers: { authorization: `Bearer ${server.token}`, accept: 'text/event-stream' },
  })
  await new Promise<void>((resolve, reject) => {
    sent.once('error', reject)
    sent.once('response', (response) => {
      if (response.statusCode !== 200) return reject(new Error(`the stream answered ${response.statusCode}`))
      response.setEncoding('utf8')
      response.on('data', (text: string) => {
        if (text.includes('\ndata:')) seen()
      })
      resolve()
    })
    sent.end()
  })
  return { next: () => new Promise((resolve) => (seen = resolve)), end: () => sent.destroy() }
}

async function openSocket(port: number): Promise<WebSocket> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}`, { perMessageDeflate: false })
  await new Promise((resolve, reject) => {
    socket.once('open', resolve)
    socket.once('error', reject)
  })
  return socket
}
