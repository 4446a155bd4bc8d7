import type { RequestListener } from 'node:http'
import { onTestFinished } from 'vitest'
import { brokerRefusal } from '../../../shared/runs/brokered.ts'
import type { McpLimits } from '../../../control-plane/sandbox/broker/mcp-requests.ts'
import { ServerUnusable, type ServerPermit } from '../../../control-plane/sandbox/broker/server-access.ts'
import { startServer } from '../../kit/hostile-server.ts'
import { startMcpServer } from '../../kit/mcp-http-server.ts'
import { startBroker } from './broker-kit.ts'

// A broker of a run with an MCP server, which it asks with what the sandbox does not have.

export const first = 'token-one/0123456789+abcdef"x'
export const second = 'token-two/9876543210+fedcba"y'

interface Given {
  token: string
  version: number
  /** Why it may not be asked any more. */
  why: string | null
  /** What becomes of a renewal. */
  renew: () => Promise<void>
  asked: (number | null)[]
}

/** A broker of a run with the MCP server `web` at this address. */
export async function startMcp(
  address: string,
  { limits, ...more }: Partial<ServerPermit> & { limits?: Partial<McpLimits> } = {},
) {
  const given: Given = {
    token: first,
    version: 1,
    why: null,
    renew: async () => void Object.assign(given, { token: second, version: 2 }),
    asked: [],
  }
  const server: ServerPermit = {
    name: 'web',
    host: '127.0.0.1',
    isSse: false,
    hasConnection: true,
    trustsSkills: false,
    async sent(refused = null) {
      given.asked.push(refused)
      if (given.why !== null) throw new ServerUnusable(given.why)
      if (refused === given.version) await given.renew()
      const { token, version } = given
      const headers = { authorization: `Bearer ${token}`, 'x-tenant': 'ours' }
      return { url: new URL(address), headers, secrets: [{ name: 'conn_1', value: token }], version }
    },
    whyNot: async () => given.why,
    ...more,
  }
  const broker = await startBroker({ permit: { servers: [server] }, ...(limits && { limits: { mcp: limits } }) })
  return { ...broker, given, server }
}

export async function startListener(answer: RequestListener) {
  const server = await startServer(answer)
  onTestFinished(() => server.close())
  return { ...server, url: `http://127.0.0.1:${server.port}/mcp` }
}

export async function mcpServer(accepts: string | null = `Bearer ${first}`) {
  const server = await startMcpServer(accepts)
  onTestFinished(() => server.stop())
  return server
}

export const call = (method: string, params: object = {}) => JSON.stringify({ jsonrpc: '2.0', id: 7, method, params })
export const say = (text: string) => call('tools/call', { name: 'say', arguments: { text } })
export const isRefusal = (answer: string) => answer.toLowerCase().includes(`${brokerRefusal}: true`)
