import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { sandboxPlaces } from '../../shared/runs/sandbox-places.ts'
import { placeholderKey } from '../../shared/runs/brokered.ts'
import { waitFor } from '../kit/programs.ts'
import { fetchHarness } from '../kit/real-harness.ts'
import { cloudServer, endedRun, hasNoEngine, imageWith } from '../kit/sandboxes.ts'
import type { TestServer } from '../kit/server.ts'
import { startModels } from '../kit/watched-models.ts'

const claude = hasNoEngine ? { missing: 'no engine' } : fetchHarness('claude')

const wake = async (server: TestServer, agentId: string): Promise<string> =>
  (await server.ok(`/agents/${agentId}/runs`, { body: { prompt: 'Go' } })).runPublicId as string

/** What was asked for is told a second later. */
const networkOf = (server: TestServer, runId: string, rows: readonly object[]) =>
  waitFor(async () => {
    const { hosts } = (await server.ok(`/runs/${runId}/network`)) as { hosts: Record<string, unknown>[] }
    const isThere = (row: object) =>
      hosts.some((host) => Object.entries(row).every(([name, value]) => host[name] === value))
    return rows.every(isThere) ? true : null
  }, `what ${runId} asked for`)

test.skipIf('missing' in claude)('the real claude works in a sandbox with a key that is nowhere in there', async () => {
  const { stub, keys, url } = await startModels()
  const key = `sk-ant-${crypto.randomUUID()}`
  const reversed = (text: string) => text.split('').toReversed().join('')
  const program = readFileSync(join(import.meta.dirname, 'look-for-key.mjs'), 'utf8')
  const command = `node look.mjs '${reversed(key)}' '${reversed(placeholderKey)}' >/tmp/look.json && svc run output --file /tmp/look.json`
  await stub.script({
    default: {
      steps: [
        { tool: { kind: 'write', path: join(sandboxPlaces.work, 'home/look.mjs'), content: program } },
        { tool: { kind: 'shell', command } },
        { text: 'Looked everywhere.' },
      ],
    },
  })
  const server = await cloudServer({
    settings: {
      SVC_SANDBOX_IMAGE: await imageWith('claude', claude as { binDir: string }),
      SVC_SANDBOX_ANTHROPIC_URL: url,
      SVC_ALLOW_HOSTS: '127.0.0.1',
    },
  })
  const agent = { environment: 'cloud', harness: 'claude', toolPermissionMode: 'full' }
  const { id } = await server.createAgent(agent)
  const headers = () => ({ 'idempotency-key': crypto.randomUUID() })
  const body = { name: 'key', envVarName: 'ANTHROPIC_API_KEY', value: key }
  const secret = await server.ok('/secrets', { body, headers: headers() })
  await server.ok(`/secrets/${secret.id}/grants`, { body: { agentId: id }, headers: headers() })
  const runId = await wake(server, id as string)
  expect(await endedRun(server, runId)).toMatchObject({
    status: 'succeeded',
    effectiveSettings: { accessMode: 'byok', providerKeyId: secret.id },
  })
  const { found, memory, files } = (await server.ok(`/runs/${runId}/output`)).data as Look
  expect(found[0]).toEqual([])
  expect(files).toBeGreaterThan(20)
  // The same look finds what is there: in the environment and in the memory of claude, and of its tools.
  expect(found[1]!.join(' ')).toMatch(/environ of \d+.*memory of \d+/)
  const looked = memory.filter(({ bytes }) => bytes > 1_000_000).map(({ name }) => name)
  expect(looked.join('\n')).toMatch(/claude/)
  expect(looked.join('\n')).toMatch(/device-manager/)
  expect([...keys]).toEqual([key])
  await networkOf(server, runId, [
    { host: '127.0.0.1', decision: 'allowed' },
    { host: 'svc', decision: 'allowed' },
  ])
  const events = JSON.stringify(await server.ok(`/runs/${runId}/events?limit=200`))
  expect(events).not.toContain(key)
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
