import { WebSocket } from 'ws'
import type { Bench } from './context.ts'
import { connectDevice, takesRuns } from './device-socket.ts'
import { atMost, compare } from './measure.ts'
import { startPeer } from './peers.ts'
import { startServer } from './stack.ts'
import { size } from './sizes.ts'

const devices = size(50, 3)
const perDevice = size(100, 5)
const beat = JSON.stringify({ type: 'heartbeat', claimState: takesRuns })

/** Each device waits for the answer before its next heartbeat; what is counted is the server's processor time. */
export const heartbeats: Bench = {
  name: 'heartbeats',
  about: 'processor time of a heartbeat, against a WebSocket that parses and echoes the same text',
  async run(context) {
    const server = await startServer(context, { name: 'heartbeats' })
    const peer = await startPeer('echo')
    const links = await Promise.all(
      Array.from({ length: devices }, (_, index) => connectDevice(server, `device-${index}`)),
    )
    const own = links.map((link) => link.socket)
    const bare = await Promise.all(
      own.map(async () => {
        const socket = new WebSocket(`ws://127.0.0.1:${peer.port}`, { perMessageDeflate: false })
        await new Promise((resolve) => socket.once('open', resolve))
        return socket
      }),
    )
    for (const link of links) link.onMessage(() => {})
    await Promise.all([storm(own), storm(bare)])
    const cost = async (side: { cpuMs(): Promise<number> }, sockets: readonly WebSocket[]) => {
      const before = await side.cpuMs()
      await storm(sockets)
      return [(((await side.cpuMs()) - before) * 1000) / (devices * perDevice)]
    }
    try {
      return [
        await compare({
          goal: 10,
          name: 'heartbeat',
          unit: 'µs of CPU',
          peerIs: 'ws echo',
          target: atMost(1.3),
          rounds: context.rounds,
          ours: () => cost(server, own),
          peer: () => cost(peer, bare),
        }),
      ]
    } finally {
      for (const socket of [...own, ...bare]) socket.terminate()
      await peer.end()
      await server.end()
    }
  },
}

async function storm(sockets: readonly WebSocket[]): Promise<void> {
  await Promise.all(
    sockets.map(
      (socket) =>
        new Promise<void>((resolve) => {
          let left = perDevice
          const answered = () => {
            if (--left > 0) return socket.send(beat)
            socket.off('message', answered)
            resolve()
          }
          socket.on('message', answered)
          socket.send(beat)
        }),
    ),
  )
}
