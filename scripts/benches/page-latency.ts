import { Agent } from 'node:http'
import { ask, type BenchServer } from './stack.ts'

/** The first answers of a new connection are not counted. */
const uncounted = 20

/** How long each of these pages takes over one connection, in milliseconds. */
export async function pageLatencies(server: BenchServer, path: () => string, count: number): Promise<number[]> {
  const agent = new Agent({ keepAlive: true })
  const samples: number[] = []
  for (let i = 0; i < count + uncounted; i++) {
    const url = `${server.url}/api/v1${path()}`
    const start = performance.now()
    const { status, text } = await ask({ agent, url, method: 'GET', token: server.token })
    if (i >= uncounted) samples.push(performance.now() - start)
    if (status !== 200) throw new Error(`${url} answered ${status}: ${text}`)
  }
  agent.destroy()
  return samples
}
