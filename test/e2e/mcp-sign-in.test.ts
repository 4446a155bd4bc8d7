import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { Browser, useLink } from '../kit/browser.ts'
import { McpOauthServer } from '../kit/mcp-oauth-server.ts'
import { programFile } from '../kit/program-file.ts'
import { fetchHarness } from '../kit/real-harness.ts'
import { startStubLlm, type StubLlm } from '../kit/stub-llm.ts'
import { TestSystem } from '../kit/system.ts'
import { claudeDriver } from './harness/drivers.ts'
import { dataOf, newAgent, plays, says, type Stage } from './harness/stage.ts'

// A sign-in to a real MCP server behind a real provider of OAuth, in a run of the real claude: its tool works before and after the end of a
// token, and neither token is where the agent could read it.

/** Tokens end so soon that a run needs several, and not while a request with one is on its way through a busy machine. */
const tokenS = 10

let note: string | null = null
let site: McpOauthServer
let stub: StubLlm
let system: TestSystem
let stage: Stage

beforeAll(async () => {
  const found = fetchHarness('claude')
  if ('missing' in found) {
    note = found.missing
    process.stderr.write(`\n*** NOT TESTED: the real claude is not available here. ${note}\n\n`)
    return
  }
  site = await McpOauthServer.start()
  stub = await startStubLlm()
  system = await TestSystem.start({
    devices: 0,
    device: { isWalled: true },
    serverEnv: { SVC_ALLOW_HOSTS: '127.0.0.1' },
  })
  site.tokenS = tokenS
  site.knows(system.server.url, { features: { registration: { enabled: true } } })
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
  await site?.stop()
})

async function signedIn(): Promise<Browser> {
  const { dataDir } = system.server
  const env = { PATH: process.env['PATH'] ?? '', HOME: system.root, SVC_DATA_DIR: dataDir }
  const line = [programFile('control-plane'), 'login-link', '--email', 'owner@localhost']
  const { stdout } = await promisify(execFile)(process.execPath, line, { env })
  const browser = new Browser(system.server)
  await useLink(browser, (JSON.parse(stdout) as { url: string }).url)
  return browser
}

const textsBelow = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => textOf(join(entry.parentPath, entry.name)))

/** Files and processes come and go meanwhile. */
function textOf(file: string): string {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    return ''
  }
}

test('the tool of a server that was signed in to works before and after the end of a token, which nobody sees', async () => {
  const { api, device } = stage
  const full = { config: { permissions: { tools: { defaultMode: 'full' } } } }
  const agent = await newAgent(stage, 'Notes', full)
  const made = await api.call<{ id: string }>('POST', '/mcp-servers', {
    name: 'notes',
    url: site.url,
    agentId: agent.id,
  })
  const begun = await api.call<{ nextStep: { authorizeUrl: string } }>('POST', '/connections', {
    integration: `mcp-server:${made.id}`,
    ownerType: 'company',
  })
  const back = await site.provider.visit(begun.nextStep.authorizeUrl)
  expect((await (await signedIn()).visit(back)).text).toContain('Connected')

  const say = { name: 'mcp__notes__say', input: {} }
  // The model thinks for longer than a token lasts.
  await says(stage, [{ tool: say }, { tool: say, delayMs: (tokenS + 1) * 1_000 }, { text: 'Said.' }])
  site.taken.length = 0
  const { run, events } = await plays(stage, agent, {})
  const results = dataOf(events, 'tool_result')
  expect(results.map(({ isError }) => isError)).toEqual([false, false])
  expect(results).toMatchObject([{ output: 'hey' }, { output: 'hey' }])
  const tokens = [...new Set(site.taken)]
  expect(tokens.length).toBeGreaterThan(1)
  expect(site.provider.asked.filter((each) => each.endsWith('refused'))).toEqual([])

  const holds = (text: string) => tokens.some((token) => text.includes(token))
  const folders = [device.stateDir, device.homeDir, agent.folder, dirname(system.server.dataDir)]
  expect(folders.flatMap(textsBelow).filter(holds)).toEqual([])
  for (const path of ['', '/events', '/manifest', '/log'])
    expect(holds(JSON.stringify((await api.raw('GET', `/runs/${run.id}${path}`)).body))).toBe(false)
})
