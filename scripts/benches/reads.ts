import { Agent } from 'node:http'
import { join } from 'node:path'
import type { Bench } from './context.ts'
import { atMost, compare, type Result } from './measure.ts'
import { startPeer } from './peers.ts'
import { ask, startServer } from './stack.ts'
import { size } from './sizes.ts'

const requests = size(4_000, 100)
const connections = 16

/** Processor time of the server alone, so that the client's does not count. */
export const reads: Bench = {
  name: 'reads',
  about: 'processor time of GET /runs/{id}, against a bare Koa that reads the same rows',
  async run(context) {
    const server = await startServer(context, { name: 'reads' })
    const agent = await server.call<{ id: string }>('POST', '/agents', {
      name: 'Runner',
      harness: 'command',
      command: 'true',
    })
    const wake = async () => {
      const { runPublicId } = await server.call<{ runPublicId: string }>('POST', `/agents/${agent.id}/runs`, {
        prompt: 'Go.',
      })
      return `/api/v1/runs/${runPublicId}`
    }
    // Most runs that are read have ended; one that waits is shown with its reason, which is worked out from more rows than
    // the peer reads.
    const [ended, waiting] = [await wake(), await wake()]
    await server.call('POST', `${ended}/cancel`, {})
    const peer = await startPeer('koa', join(server.dataDir, 'svc.db'))
    const targets = (path: string) => ({
      bare: { url: `http://127.0.0.1:${peer.port}${path}`, token: server.token },
      own: { url: `${server.url}${path}`, token: server.token },
    })
    try {
      const results: Result[] = []
      for (const [name, path] of [
        ['an ended run', ended],
        ['a run that waits for a device', waiting],
      ] as const) {
        const { bare, own } = targets(path)
        await Promise.all([storm(bare), storm(own)])
        results.push(
          await compare({
            goal: 12,
            name: `GET /runs/{id}, ${name}`,
            unit: 'µs of CPU',
            peerIs: 'bare Koa',
            target: atMost(1.25),
            rounds: context.rounds,
            ours: () => costOf(server, () => storm(own)),
            peer: () => costOf(peer, () => storm(bare)),
          }),
        )
      }
      return results
    } finally {
      await peer.end()
      await server.end()
    }
  },
}

async function costOf(server: { cpuMs(): Promise<number> }, work: () => Promise<void>): Promise<number[]> {
  const before = await server.cpuMs()
  await work()
  return [((await server.cpuMs()) - before) * (1000 / requests)]
}

async function storm({ url, token }: { url: string; token: string }): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  let left = requests
  const one = async () => {
    while (left-- > 0) {
      const { status, text } = await ask({ agent, url, method: 'GET', token })
      if (status !== 200) throw new Error(`${url} answered ${status}: ${text}`)
    }
  }
  await Promise.all(Array.from({ length: connections }, one))
  agent.destroy()
}
