import { startProxy, type TestProxy } from './proxy.ts'
import { delay } from './programs.ts'

/**
 * What stands before several replicas: it asks each for `/readyz`, and leads new connections to those in turn that are ready.
 * Connections that are open stay where they are.
 */
export interface Balancer {
  readonly proxy: TestProxy
  /** What each replica last answered to `/readyz`, its reason where it is not ready. */
  readonly states: ReadonlyMap<Replica, string>
  close(): Promise<void>
}

export interface Replica {
  readonly url: string
  readonly port: number
}

/** Far below the time for which a replica that stops says so. */
const askEveryMs = 100

export async function startBalancer(servers: readonly Replica[]): Promise<Balancer> {
  const states = new Map<Replica, string>()
  const state = { isClosed: false }
  let turn = 0
  const proxy = await startProxy(() => {
    const ready = servers.filter((server) => states.get(server) === 'ready')
    const next = ready[turn++ % Math.max(1, ready.length)] ?? servers[0]!
    return { host: '127.0.0.1', port: next.port }
  })
  const ask = async () => {
    await Promise.all(servers.map(async (server) => states.set(server, await replicaState(server))))
  }
  const asking = (async () => {
    while (!state.isClosed) {
      await ask()
      await delay(askEveryMs)
    }
  })()
  await ask()
  return {
    proxy,
    states,
    async close() {
      state.isClosed = true
      await asking
      await proxy.close()
    },
  }
}

/** `ready`, the reason why it is not, or `away`. */
export async function replicaState(server: Pick<Replica, 'url'>): Promise<string> {
  try {
    const response = await fetch(`${server.url}/readyz`, { headers: { connection: 'close' } })
    const { status, reason } = (await response.json()) as { status: string; reason?: string }
    return response.status === 200 ? status : (reason ?? status)
  } catch {
    return 'away'
  }
}
