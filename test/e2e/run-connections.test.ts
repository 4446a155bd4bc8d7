import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { startMcpServer, type McpHttpServer } from '../kit/mcp-http-server.ts'
import { serviceSettings } from '../kit/services.ts'
import { fetchHarness } from '../kit/real-harness.ts'
import { startStubLlm, type StubLlm } from '../kit/stub-llm.ts'
import { TestSystem } from '../kit/system.ts'
import { claudeDriver } from './harness/drivers.ts'
import { dataOf, newAgent, plays, says, type Stage } from './harness/stage.ts'

// A connection of the workspace in runs of the real claude, which uses a tool of its service and never has its key.

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
    {
      id: 'notes',
      label: 'Notes',
      authKind: 'api_key',
      surfaces: ['mcp', 'native'],
      mcp: { url: mcp.url, headers: { authorization: 'Bearer {apiKey}' } },
      fields: [
        { name: 'apiKey', label: 'Key', required: true },
        { name: 'token', label: 'Token', required: true, env: 'NOTES_TOKEN' },
      ],
    },
  ]
  const serverEnv = serviceSettings({ services })
  system = await TestSystem.start({ devices: 0, device: { isWalled: true }, serverEnv })
  const device = system.makeDevice()
  const modelUrl = `${stub.url}/s/claude`
  claudeDriver.install(device.homeDir, { binDir: found.binDir, modelUrl })
  await device.enrol(system.api, system.server.url)
  await device.start()
  stage = { driver: claudeDriver, system, api: system.api, device, stub, binDir: found.binDir, modelUrl }
})
beforeEach(async (context) => {
  if (note !== null) context.skip(note)
  for (const id of (await activeConnections()).map(({ id }) => id))
    await stage.api.call('POST', `/connections/${id}/revoke`)
})
const activeConnections = async () =>
  (await stage.api.call<{ data: { id: string }[] }>('GET', '/connections?status=active')).data
afterAll(async () => {
  await system?.stop()
  await stub?.stop()
  await mcp?.stop()
})

const full = { config: { permissions: { tools: { defaultMode: 'full' } } } }
const say = { name: 'mcp__tracker__say', input: { text: 'hey' } }

async function connect(apiKey: string, more: object = {}): Promise<string> {
  const body = {
    integrationId: 'tracker',
    ownerType: 'company',
    accountLabel: crypto.randomUUID(),
    apiKeyFields: { apiKey },
    ...more,
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

/** The files of the device, and the parts of processes, that hold the text. */
function holdersOf(text: string, folder: string): string[] {
  const { device } = stage
  const files = [device.stateDir, device.homeDir, folder].flatMap(filesBelow)
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  const parts = pids.flatMap((pid) => ['cmdline', 'environ'].map((part) => `/proc/${pid}/${part}`))
  return [...files, ...parts].filter((path) => textOf(path).includes(text))
}

async function expectNowhereIn(runId: string, events: unknown, text: string): Promise<void> {
  expect(JSON.stringify(events)).not.toContain(text)
  for (const path of ['', '/events', '/manifest', '/log'])
    expect(JSON.stringify((await stage.api.raw('GET', `/runs/${runId}${path}`)).body)).not.toContain(text)
  expect(textOf(system.server.logPath)).not.toContain(text)
  expect(filesBelow(dirname(system.server.dataDir)).filter((file) => textOf(file).includes(text))).toEqual([])
}

test('a tool is used with a key that stands nowhere else', async () => {
  const agent = await agentWith('Tracker', await connect(key))
  const holding: string[] = []
  const look = () => holding.push(...holdersOf(key, agent.folder))
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
  look()
  expect(holding).toEqual([])
  await expectNowhereIn(run.id, events, key)
})

test('a service has its tools and its variable in runs without being named, and the variable is in the environment alone', async () => {
  const token = 'token_nobody_may_see_77c1'
  const connectionId = await connect('', { integrationId: 'notes', apiKeyFields: { apiKey: key, token } })
  const agent = await newAgent(stage, 'Notes', full)
  const holding: string[] = []
  mcp.instead = ({ said }) => {
    if (said?.method === 'tools/call') holding.push(...holdersOf(token, agent.folder))
    return false
  }
  const shell = { name: 'Bash', input: { command: 'echo "$NOTES_TOKEN $NOTES_TOKEN" | tee copy.txt' } }
  await says(stage, [{ tool: { ...say, name: 'mcp__notes__say' } }, { tool: shell }, { text: 'Done.' }])
  const { run, events } = await plays(stage, agent, {})
  mcp.instead = null
  expect(dataOf(events, 'tool_result')).toMatchObject([
    { isError: false },
    { isError: false, output: '[redacted:NOTES_TOKEN] [redacted:NOTES_TOKEN]' },
  ])
  expect(holding).not.toEqual([])
  expect(holding.filter((path) => !path.endsWith('/environ'))).toEqual([])
  // What the agent has printed, claude keeps with all else of its session.
  rmSync(join(stage.device.homeDir, '.claude/projects'), { recursive: true })
  const written = holdersOf(token, agent.folder)
  expect(written).toEqual([join(agent.folder, 'copy.txt')])
  rmSync(join(agent.folder, 'copy.txt'))
  await expectNowhereIn(run.id, events, token)
  await stage.api.call('POST', `/connections/${connectionId}/revoke`)
  await says(stage, [{ tool: shell }, { text: 'Done.' }])
  const after = await plays(stage, agent, {})
  expect(dataOf(after.events, 'tool_result')).toMatchObject([
    { isError: false, output: expect.not.stringContaining('redacted') },
  ])
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
  await stage.api.call('POST', `/connections/${refused}/revoke`)
  expect(await activeConnections()).toEqual([])
  mcp.calls.length = 0
  await says(stage, [{ text: 'Without it.' }])
  await plays(stage, agents[1]!, {})
  expect(mcp.calls).toEqual([])
})
