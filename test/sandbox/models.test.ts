import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { sandboxPlaces } from '../../shared/runs/sandbox-places.ts'
import { placeholderKey } from '../../shared/runs/brokered.ts'
import { startMcpServer } from '../kit/mcp-http-server.ts'
import { fetchHarness } from '../kit/real-harness.ts'
import { cloudServer, endedRun, hasNoEngine, imageWith, networkOf } from '../kit/sandboxes.ts'
import { serviceSettings } from '../kit/services.ts'
import type { TestServer } from '../kit/server.ts'
import { startModels } from '../kit/watched-models.ts'

const claude = hasNoEngine ? { missing: 'no engine' } : fetchHarness('claude')

const wake = async (server: TestServer, agentId: string): Promise<string> =>
  (await server.ok(`/agents/${agentId}/runs`, { body: { prompt: 'Go' } })).runPublicId as string

const reversed = (text: string) => text.split('').toReversed().join('')
const random = () => crypto.randomUUID().replaceAll('-', '')

/** A service with a tool that says back what it was sent, and another MCP server. They take these keys. */
async function startTools(keys: { tracker: string; own: string }) {
  const tracker = await startMcpServer(`Bearer ${keys.tracker}`)
  const own = await startMcpServer(`Bearer ${keys.own}`)
  onTestFinished(async () => {
    await tracker.stop()
    await own.stop()
  })
  tracker.instead = ({ said, headers }, response) => {
    if (said?.method !== 'tools/call') return false
    const result = { content: [{ type: 'text', text: `said hey with ${headers.authorization}` }] }
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ jsonrpc: '2.0', id: said.id, result }))
    return true
  }
  const service = {
    id: 'tracker',
    label: 'Tracker',
    authKind: 'api_key',
    surfaces: ['mcp', 'native'],
    mcp: { url: tracker.url },
    fields: [{ name: 'apiKey', label: 'Key', required: true, env: 'TRACKER_KEY' }],
    hosts: ['api.tracker.test'],
  }
  return { tracker, own, settings: serviceSettings({ services: [service] }) }
}

test.skipIf('missing' in claude)('the real claude works in a sandbox with keys that are nowhere in there', async () => {
  const { stub, keys, url } = await startModels()
  const [key, tracker, own] = [`sk-ant-${random()}`, `key_${random()}`, `own_${random()}`]
  const tools = await startTools({ tracker, own })
  const program = readFileSync(join(import.meta.dirname, 'look-for-key.mjs'), 'utf8')
  const wanted = [key, tracker, own, placeholderKey].map((text) => `'${reversed(text)}'`).join(' ')
  const placeholder = `"$(node -p 'process.env.TRACKER_KEY.split("").reverse().join("")')"`
  const command = `node look.mjs ${wanted} ${placeholder} >/tmp/look.json && svc run output --file /tmp/look.json`
  await stub.script({
    default: {
      steps: [
        { tool: { kind: 'write', path: join(sandboxPlaces.work, 'home/look.mjs'), content: program } },
        { tool: { name: 'mcp__tracker__say', input: { text: 'hey' } } },
        { tool: { name: 'mcp__own__say', input: { text: 'you' } } },
        { tool: { kind: 'shell', command } },
        { text: 'Looked everywhere.' },
      ],
    },
  })
  const server = await cloudServer({
    settings: {
      SVC_SANDBOX_IMAGE: await imageWith('claude', claude as { binDir: string }),
      SVC_SANDBOX_ANTHROPIC_URL: url,
      ...tools.settings,
    },
  })
  const post = (path: string, body: object) =>
    server.ok(path, { body, headers: { 'idempotency-key': crypto.randomUUID() } })
  const agent = { environment: 'cloud', harness: 'claude', toolPermissionMode: 'full' }
  const { id: agentId } = await server.createAgent(agent)
  const secret = await post('/secrets', { name: 'key', envVarName: 'ANTHROPIC_API_KEY', value: key })
  await post(`/secrets/${secret.id}/grants`, { agentId })
  const signIn = { integrationId: 'tracker', ownerType: 'company', apiKeyFields: { apiKey: tracker } }
  const { connection } = await post('/connections', signIn)
  await post('/secrets', { name: 'own', envVarName: 'OWN_TOKEN', value: own, agentId })
  const headers = { authorization: 'Bearer ${OWN_TOKEN}' }
  await post('/mcp-servers', { name: 'own', transport: 'http', url: tools.own.url, headers, agentId })
  const runId = await wake(server, agentId as string)
  expect(await endedRun(server, runId)).toMatchObject({
    status: 'succeeded',
    effectiveSettings: { accessMode: 'byok', providerKeyId: secret.id },
  })
  const { found, memory, files } = (await server.ok(`/runs/${runId}/output`)).data as Look
  expect(found.slice(0, 3)).toEqual([[], [], []])
  expect(files).toBeGreaterThan(20)
  // The same look finds what is there: in the environment and in the memory of claude, and of its tools.
  for (const places of found.slice(3)) expect(places.join(' ')).toMatch(/environ of \d+.*memory of \d+/)
  const looked = memory.filter(({ bytes }) => bytes > 1_000_000).map(({ name }) => name)
  expect(looked.join('\n')).toMatch(/claude/)
  expect(looked.join('\n')).toMatch(/device-manager/)
  expect([...keys]).toEqual([key])
  await networkOf(server, runId, [
    { host: '127.0.0.1', decision: 'allowed' },
    { host: 'svc', decision: 'allowed' },
  ])
  const events = JSON.stringify(await server.ok(`/runs/${runId}/events?limit=200`))
  for (const text of [key, tracker, own]) expect(events).not.toContain(text)
  expect(events).toContain(`said hey with Bearer [redacted:${connection.id}]`)
  expect(events).toContain('said you')
  expect(await server.ok(`/runs/${runId}/manifest`)).toMatchObject({
    envKeys: expect.arrayContaining(['TRACKER_KEY']),
    envKeysLeftOut: [{ name: 'OWN_TOKEN' }],
    mcpServers: { given: expect.arrayContaining(['own', 'tracker']) },
  })
})

interface Look {
  found: string[][]
  memory: { name: string; bytes: number }[]
  files: number
}

test.skipIf(hasNoEngine)('a harness that the image lacks ends the run with a sentence', async () => {
  const server = await cloudServer({ settings: { SVC_SANDBOX_OPENAI_KEY: 'sk-operator' } })
  const { id } = await server.createAgent({ environment: 'cloud', harness: 'codex' })
  const run = await endedRun(server, await wake(server, id as string))
  expect(run).toMatchObject({ status: 'failed', exitReason: 'harness_start_failed' })
  expect(run['errorMessage']).toMatch(/codex/)
})

test.skipIf(hasNoEngine)('a sandbox reaches the hosts of its workspace through the broker, and no others', async () => {
  const outside = createServer((_request, response) => response.end('from outside'))
  await new Promise<void>((resolve) => outside.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void outside.close())
  const { port } = outside.address() as AddressInfo
  const server = await cloudServer({ settings: { SVC_ALLOW_HOSTS: 'localhost' } })
  await server.ok(`/workspaces/${server.owner.workspaceId}`, {
    method: 'PATCH',
    body: { sandboxEgress: ['localhost'] },
  })
  const tunnel = (host: string) =>
    `node -e "const h='${host}';require('http').request({port:4400,host:'127.0.0.1',method:'CONNECT',path:h}).on('connect',(r,s)=>{console.log(h,r.statusCode);s.on('data',(d)=>console.log(String(d)));s.on('end',()=>s.end());s.write('GET / HTTP/1.1\\r\\nhost: x\\r\\nconnection: close\\r\\n\\r\\n')}).end()"`
  const command = `env | grep -i proxy; ${tunnel(`localhost:${port}`)}; ${tunnel('example.com:443')}; ${tunnel('169.254.169.254:80')}`
  const agent = { environment: 'cloud', harness: 'command', toolPermissionMode: 'full', command }
  const runId = await wake(server, (await server.createAgent(agent)).id as string)
  expect(await endedRun(server, runId)).toMatchObject({ status: 'succeeded' })
  const { data } = (await server.ok(`/runs/${runId}/events?limit=200`)) as { data: { data: { text?: string } }[] }
  const text = data.map(({ data: { text: said = '' } }) => said).join('')
  expect(text).toContain('HTTPS_PROXY=http://127.0.0.1:4400')
  expect(text).toContain('NODE_USE_ENV_PROXY=1')
  expect(text).toContain('from outside')
  expect(text).toContain('example.com:443 403')
  expect(text).toContain('169.254.169.254:80 403')
  await networkOf(server, runId, [
    { host: 'localhost', decision: 'allowed', requests: 1 },
    { host: 'example.com', decision: 'refused', requests: 1 },
  ])
})
