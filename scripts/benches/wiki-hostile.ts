import { hostilePages } from '../../test/kit/hostile-pages.ts'
import { delay } from '../../test/kit/programs.ts'
import type { Bench } from './context.ts'
import { atMost, compare, quantile } from './measure.ts'
import { lagResolutionMs, serverProbe } from './server-probe.ts'
import { size } from './sizes.ts'
import { startServer } from './stack.ts'

const pages = Object.entries(hostilePages).slice(0, size(Number.POSITIVE_INFINITY, 3))

/** What pages that want to hold a server do to everybody else there. */
export const wikiHostile: Bench = {
  name: 'wiki-hostile',
  about: `pages of 262,144 brackets, images, tables, quotes and the like, against a server that does nothing`,
  async run(context) {
    const probe = serverProbe(context, 'wiki-hostile')
    const server = await startServer(context, { name: 'wiki-hostile', nodeFlags: probe.nodeFlags })
    let made = 0
    const asked: number[] = []
    const own: number[] = []
    /** One after another; resolves with how long it took. */
    const publishAll = async (): Promise<number> => {
      const startedAt = performance.now()
      for (const [name, body] of pages) {
        const reply = await fetch(`${server.url}/api/v1/wiki/pages`, {
          method: 'POST',
          headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' },
          body: JSON.stringify({ title: `${name} ${made++}`, body }),
        })
        const text = await reply.text()
        if (reply.status !== 201 && !text.includes('wiki_publish_failed'))
          throw new Error(`${name}: ${reply.status} ${text}`)
      }
      return performance.now() - startedAt
    }
    const whileAsking = async <Value>(work: () => Promise<Value>): Promise<Value> => {
      const over = new AbortController()
      const asking = (async () => {
        while (!over.signal.aborted) {
          const at = performance.now()
          await (await fetch(`${server.url}/healthz`)).arrayBuffer()
          asked.push(performance.now() - at)
          await delay(20)
        }
      })()
      try {
        return await work()
      } finally {
        over.abort()
        await asking
      }
    }
    try {
      let lastedMs = await publishAll()
      return [
        await compare({
          name: `event loop's lag p99 beside ${pages.length} hostile pages`,
          unit: 'ms',
          peerIs: 'idle',
          target: atMost(3),
          rounds: context.rounds,
          note: () =>
            `the ${lagResolutionMs} ms of its timer are in both; ${quantile(own, 0.5).toFixed(1)} ms without what other programs did; /healthz p99 ${quantile(asked, 0.99).toFixed(1)} ms`,
          async ours() {
            await probe.lagP99()
            await probe.ownLagP99()
            lastedMs = await whileAsking(publishAll)
            own.push(await probe.ownLagP99())
            return [await probe.lagP99()]
          },
          async peer() {
            await delay(1_000)
            await probe.lagP99()
            await delay(lastedMs)
            return [await probe.lagP99()]
          },
        }),
      ]
    } finally {
      await server.end()
    }
  },
}
