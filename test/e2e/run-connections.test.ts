import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { startMcpServer, type McpHttpServer } from '../kit/mcp-http-server.ts'
import { fetchHarness } from '../kit/real-harness.ts'
import { startStubLlm, type StubLlm } from '../kit/stub-llm.ts'
import { TestSystem } from '../kit/system.ts'
import { claudeDriver } from './harness/drivers.ts'
import { dataOf, newAgent, plays, says, type Stage } from './harness/stage.ts'

/** A connection of the workspace in runs of the real claude, which uses a tool of its service and never has its key. */

const key = 'key_nobody_may_see_5f2a'
let note: string | null = null
let stub: StubLlm
let mcp: McpHttpServer
let system: TestSystem
let stage: Stage

beforeAll(async () => {
  const found = fetchHarness('claude')
  if ('missing' in found) {
    note = found.missing
    process.stderr.write(`\n*** NOT TESTED: the real claude is not available here. ${note}\n\n`)
    return
  }
  mcp = await startMcpServer(`Bearer ${key}`)
  stub = await startStubLlm()
  const services = [
    {
      id: 'tracker',
      label: 'Tracker',
      authKind: 'api_key',
      surfaces: ['mcp'],
      mcp: { url: mcp.url },
      fields: [{ name: 'apiKey', label: 'Key', required: true }],
    },
  ]
  const file = join(mkdtempSync(join(tmpdir(), 'svc-services-')), 'services.json')
  writeFileSync(file, JSON.stringify({ services }))
  const serverEnv = { SVC_SERVICES_FILE: file, SVC_ALLOW_HOSTS: '127.0.0.1' }
  system = await TestSystem.start({ devices: 0, device: { isWalled: true }, serverEnv })
  const device = system.makeDevice()
  const modelUrl = `${stub.url}/s/claude`
  claudeDriver.install(device.homeDir, { binDir: found.binDir, modelUrl })
  await device.enrol(system.api, system.server.url)
  await device.start()
  stage = { driver: claudeDriver, system, api: system.api, device, stub, binDir: found.binDir, modelUrl }
})
beforeEach((context) => {
  if (note !== null) context.skip(note)
})
afterAll(async () => {
  await system?.stop()
  await stub?.stop()
  await mcp?.stop()
})

const full = { config: { permissions: { tools: { defaultMode: 'full' } } } }
const say = { name: 'mcp__tracker__say', input: { text: 'hey' } }

async function connect(apiKey: string): Promise<string> {
  const body = {
    integrationId: 'tracker',
    ownerType: 'company',
    accountLabel: crypto.randomUUID(),
    apiKeyFields: { apiKey },
  }
  const reply = await stage.api.call<{ connection: { id: string } }>('POST', '/connections', body)
  return reply.connection.id
}

async function agentWith(name: string, connectionId: string) {
  const agent = await newAgent(stage, name, full)
  const body = { name: 'tracker', url: mcp.url, connectionId, agentId: agent.id }
  await stage.api.call('POST', '/mcp-servers', body)
  return agent
}

const filesBelow = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))

/** Files and processes come and go meanwhile. */
function textOf(file: string): string {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    return ''
  }
}

test('a tool is used with a key that stands nowhere else', async () => {
  const agent = await agentWith('Tracker', await connect(key))
  const { device, api } = stage
  const holding: string[] = []
  const look = () => {
    for (const file of [device.stateDir, device.homeDir, agent.folder].flatMap(filesBelow))
      if (textOf(file).includes(key)) holding.push(file)
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name)))
      for (const part of ['cmdline', 'environ'])
        if (textOf(`/proc/${pid}/${part}`).includes(key)) holding.push(`${part} of ${pid}`)
  }
  mcp.instead = ({ said }, response) => {
    if (said?.method !== 'tools/call') return false
    look()
    const echo = { content: [{ type: 'text', text: `said hey with Bearer ${key}` }] }
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ jsonrpc: '2.0', id: said.id, result: echo }))
    return true
  }
  await says(stage, [{ tool: say }, { text: 'Said.' }])
  const { run, events } = await plays(stage, agent, {})
  mcp.instead = null
  expect(mcp.of('tools/call')).toHaveLength(1)
  expect(dataOf(events, 'tool_result')).toMatchObject([
    { isError: false, output: expect.stringMatching(/^said hey with Bearer \[redacted:conn_/) },
  ])
  expect(JSON.stringify(events)).not.toContain(key)
  look()
  expect(holding).toEqual([])
  for (const path of ['', '/events', '/manifest', '/log'])
    expect(JSON.stringify((await api.raw('GET', `/runs/${run.id}${path}`)).body)).not.toContain(key)
  expect(textOf(system.server.logPath)).not.toContain(key)
  expect(filesBelow(dirname(system.server.dataDir)).filter((file) => textOf(file).includes(key))).toEqual([])
})

test('a key that the service takes no more, and a connection that is revoked, fail the call with words, and the run goes on', async () => {
  const refused = await connect(key)
  const revoked = await connect('key_other_5f2a')
  const agents = [await agentWith('Refused', refused), await agentWith('Revoked', revoked)]
  mcp.instead = ({ said }, response) => {
    if (said?.method !== 'tools/call') return false
    response.writeHead(401).end()
    return true
  }
  // The model has heard the key elsewhere, and says it.
  await says(stage, [{ tool: say }, { text: `Not said with ${key}.` }])
  const first = await plays(stage, agents[0]!, {})
  mcp.instead = null
  expect(JSON.stringify(first.events)).toContain(`Not said with [redacted:${refused}].`)
  const [result] = dataOf(first.events, 'tool_result')
  expect(JSON.stringify(result)).toContain(`svc connection reauthorize ${refused}`)
  expect(result).toMatchObject({ isError: true })

  await stage.api.call('POST', `/connections/${revoked}/revoke`)
  mcp.calls.length = 0
  await says(stage, [{ text: 'Without it.' }])
  await plays(stage, agents[1]!, {})
  expect(mcp.calls).toEqual([])
})
