import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import { startMcpServer, type McpHttpServer } from '../../kit/mcp-http-server.ts'
import { claudeMachine } from '../../kit/real-claude.ts'
import { fetchHarness, type Fetched, type HarnessMachine } from '../../kit/real-harness.ts'
import { startStubLlm, type StubLlm } from '../../kit/stub-llm.ts'
import { specOf, spooled, testDevice, type TestDevice } from '../run-host/host-client.ts'

// The real claude in a real run host; only its model and its MCP server are scripted.

const secret = 'a-secret-nobody-may-see'
let found: Fetched
let stub: StubLlm
let machine: HarnessMachine
let device: TestDevice
let server: McpHttpServer

beforeAll(async () => {
  found = fetchHarness('claude')
  if ('missing' in found) {
    process.stderr.write(`\n*** NOT TESTED: the real claude is not available here. ${found.missing}\n\n`)
    return
  }
  stub = await startStubLlm()
  machine = claudeMachine({ binDir: found.binDir, baseUrl: `${stub.url}/s/run`, apiKey: 'dummy' })
  device = testDevice()
  server = await startMcpServer(`Bearer ${secret}`)
})
beforeEach((context) => {
  if ('missing' in found) context.skip(found.missing)
})
afterAll(async () => {
  await server?.stop()
  device?.remove()
  await machine?.remove()
  await stub?.stop()
})

async function run(mcpServers: RunSpec['mcpServers']) {
  const spec = specOf(device, {
    harness: 'claude',
    command: null,
    folder: { shortId: 'fs_1', rootPath: machine.cwd },
    permissions: { allow: ['mcp__web__*'], ask: [], deny: [], defaultMode: 'strict' },
    mcpServers,
  })
  const host = await device.host()
  await host.connect()
  host.assign(spec, { env: machine.env, homeDir: machine.home })
  await host.reply('prepared')
  host.start({ secrets: { WEB_TOKEN: secret } })
  const { pid } = await host.reply('started')
  const { report } = await host.reply('ended')
  await host.left()
  return { pid: pid ?? 0, report, ...spooled(device, spec.runId) }
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
}

it('uses a tool of a server whose credential stands in no file, argument and event', async () => {
  const say = { name: 'mcp__web__say', input: { text: 'hey' } }
  const other = { ...say, name: 'mcp__other__say' }
  await stub.script({ run: { steps: [{ tools: [say, other] }, { text: 'Said.' }] } })
  const holding: string[] = []
  const doors: string[] = []
  server.instead = ({ said }, response) => {
    if (said?.method !== 'tools/call') return false
    const folders = [device.stateDir, dirname(machine.home), dirname(device.stateDir)]
    for (const file of folders.flatMap(filesBelow)) {
      const content = textOf(file)
      if (content.includes(secret)) holding.push(file)
      if (/http:\/\/127\.0\.0\.1:\d+\/[\w-]{43}"/.test(content)) doors.push(file)
    }
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
      if (textOf(`/proc/${pid}/cmdline`).includes(secret)) holding.push(`arguments of ${pid}`)
    }
    const echo = { content: [{ type: 'text', text: `said hey to Bearer ${secret}` }] }
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ jsonrpc: '2.0', id: said.id, result: echo }))
    return true
  }
  const web = { type: 'http' as const, url: server.url, headers: { authorization: 'Bearer ${WEB_TOKEN}' } }
  const { events, log, report } = await run({ web, other: web })
  expect(report, JSON.stringify(events)).toMatchObject({ exitReason: 'completed' })
  const results = events.filter(({ kind }) => kind === 'tool_result').map(({ data }) => data)
  expect(results.find(({ isError }) => isError === false)).toMatchObject({
    output: 'said hey to Bearer [redacted:WEB_TOKEN]',
  })
  // A rule is for the tools of one server.
  expect(events.filter(({ kind }) => kind === 'permission').map(({ data }) => data)).toMatchObject([
    { name: 'mcp__web__say', decision: 'allow', rule: 'mcp__web__*' },
    { name: 'mcp__other__say', decision: 'deny' },
  ])
  expect(server.of('tools/call')).toHaveLength(1)
  expect(holding).toEqual([])
  expect(new Set(doors).size).toBe(1)
  expect(doors[0]!.startsWith(device.stateDir)).toBe(true)
  expect(log.includes(secret)).toBe(false)
  expect(JSON.stringify((await stub.requests()).map(({ body }) => body))).not.toContain(secret)
  expect(filesBelow(device.stateDir).filter((file) => readFileSync(file).includes(secret))).toEqual([])
})

it('is told why a tool failed, and its run ends although a stream of the server is open', async () => {
  const say = { name: 'mcp__web__say', input: { text: 'hey' } }
  await stub.script({ run: { steps: [{ tool: say }, { text: 'Not said.' }] } })
  server.calls.length = 0
  server.instead = ({ said }, response) => said?.method === 'tools/call' && response.socket?.destroy() !== undefined
  const web = { type: 'http' as const, url: server.url, headers: { authorization: 'Bearer ${WEB_TOKEN}' } }
  const { events, report } = await run({ web })
  expect(report, JSON.stringify(events)).toMatchObject({ exitReason: 'completed', forced: false })
  expect(JSON.stringify(events)).toContain('The MCP server web: it could not be reached')
  expect(server.calls.some(({ method }) => method === 'GET')).toBe(true)
  expect(server.of('tools/call')).toHaveLength(1)
})

/** Files and processes come and go meanwhile. */
function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
