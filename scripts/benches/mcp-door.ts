import { fork } from 'node:child_process'
import { once } from 'node:events'
import { Agent, request, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { filledServers } from '../../shared/runs/filled-servers.ts'
import { Connections } from '../../device-manager/run-host/mcp-proxy/connections.ts'
import { openMcpProxies } from '../../device-manager/run-host/mcp-proxy/mcp-proxies.ts'
import { realWorld } from '../../shared/lib/world.ts'
import type { McpServers } from '../../shared/runs/mcp-servers.ts'
import type { Bench } from './context.ts'
import { atMost, compare } from './measure.ts'
import { size } from './sizes.ts'

const calls = size(300, 5)
const streams = size(50, 3)

/** Through the door of a run, as a harness that keeps its connection, against the same server asked directly. */
export const mcpDoor: Bench = {
  name: 'mcp-door',
  about:
    'a tool call of an MCP server through the door of a run, and the first event of a stream, against the server itself',
  async run(context) {
    const server = fork(join(import.meta.dirname, 'mcp-peer.ts'))
    const [url] = (await once(server, 'message')) as [string]
    const secrets = { KEY: 'a-secret-of-the-bench' }
    const headers = { authorization: 'Bearer ${KEY}' }
    const spec: McpServers = {
      web: { type: 'http', url, headers },
      slow: { type: 'http', url: `${url}/slow`, headers },
    }
    const doors = await openMcpProxies(spec, {
      log: () => {},
      connections: new Connections({ world: realWorld, ask: () => {} }),
    })
    const agent = new Agent({ keepAlive: true })
    try {
      const led = doors.lead(filledServers(spec, secrets).servers, { spec, secrets, env: {} }).servers
      const [address, slow] = ['web', 'slow'].map((name) => (led[name] as { url: string }).url) as [string, string]
      const common = { unit: 'ms', peerIs: 'direct', rounds: context.rounds }
      return [
        await compare({
          ...common,
          name: 'an MCP tool call of 5 ms through the door',
          target: atMost(1.5),
          ours: () => times(calls, () => call(slow, agent)),
          peer: () => times(calls, () => call(`${url}/slow`, agent)),
        }),
        await compare({
          ...common,
          name: 'an MCP tool call that takes no time through the door',
          ours: () => times(calls, () => call(address, agent)),
          peer: () => times(calls, () => call(url, agent)),
        }),
        await compare({
          ...common,
          name: 'the first event of an MCP stream through the door',
          ours: () => times(streams, () => firstEvent(address)),
          peer: () => times(streams, () => firstEvent(url)),
        }),
      ]
    } finally {
      doors.close()
      agent.destroy()
      server.disconnect()
    }
  },
}

async function times(count: number, act: () => Promise<void>): Promise<number[]> {
  const all: number[] = []
  for (let at = 0; at < count; at++) {
    const from = performance.now()
    await act()
    all.push(performance.now() - from)
  }
  return all
}

const params = { name: 'say', arguments: { text: 'hey' } }
const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })

async function call(url: string, agent: Agent): Promise<void> {
  const sent = request(url, { method: 'POST', agent, headers: { 'content-type': 'application/json' } }).end(body)
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  const chunks: Buffer[] = []
  for await (const chunk of answer as AsyncIterable<Buffer>) chunks.push(chunk)
  if (!Buffer.concat(chunks).includes('said hey')) throw new Error('the tool did not say it')
}

async function firstEvent(url: string): Promise<void> {
  const sent = request(url, { method: 'GET', agent: false, headers: { accept: 'text/event-stream' } }).end()
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  await once(answer, 'data')
  answer.on('error', () => {}).destroy()
}
