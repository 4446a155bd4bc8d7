import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { RunManifest } from '../../shared/api/run-records.ts'
import type { Skill } from '../../shared/api/skill-fields.ts'
import type { Plugin } from '../../shared/api/plugin-fields.ts'
import { bundleOf, pluginFiles } from '../api/facts/kit/plugins.ts'
import { startMcpServer } from '../kit/mcp-http-server.ts'
import { waitFor } from '../kit/programs.ts'
import { TestSystem } from '../kit/system.ts'
import { claudeDriver } from './harness/drivers.ts'
import { asked, dataOf, ended, newAgent, plays, says, stageFor, type Stage } from './harness/stage.ts'

// Skills of a workspace in runs of the real claude, which says with its first line which skills it has.

const stdioServer = join(import.meta.dirname, '../kit/mcp-server.mjs')

/** claude, whose output is written to a file, too. */
const listening = {
  ...claudeDriver,
  install(home: string, { binDir, modelUrl }: { binDir: string; modelUrl: string }) {
    const bin = join(home, 'bin')
    mkdirSync(bin)
    const lines = ['#!/bin/sh', `case "$1" in --version) exec '${binDir}/claude' "$@";; esac`]
    writeFileSync(join(bin, 'claude'), [...lines, `'${binDir}/claude' "$@" | tee -a '${home}/said'`, ''].join('\n'))
    chmodSync(join(bin, 'claude'), 0o755)
    claudeDriver.install(home, { binDir: bin, modelUrl })
  },
}
const stageOf = stageFor(listening)

/** The last run's first line. */
function saidFirst(home: string): { skills: string[]; mcp_servers: { name: string; status: string }[] } {
  const lines = readFileSync(join(home, 'said'), 'utf8').split('\n')
  const init = lines.findLast((line) => line.startsWith('{"type":"system","subtype":"init"'))
  return JSON.parse(init ?? '{"skills":[],"mcp_servers":[]}') as ReturnType<typeof saidFirst>
}
const saidSkills = (home: string) => saidFirst(home).skills.filter((name) => name.startsWith('svc:'))
const saidServers = (home: string) => saidFirst(home).mcp_servers.map(({ name }) => name)

test('a run has the skills that are on for its agent, and another set begins a new session', async () => {
  const { api, device } = stageOf()
  const agent = await newAgent(stageOf(), 'Sailor', { config: { permissions: { tools: { defaultMode: 'full' } } } })
  const create = (slug: string, files: object[]) =>
    api.call<Skill>('POST', '/skills', { slug, name: slug, description: `All about ${slug}.`, bundle: { files } })
  const text = ['---', 'name: else', 'allowed-tools: Bash', 'hooks:', '  Stop: []', '---', 'Read refs/times.md.']
  await create('tides', [
    { path: 'SKILL.md', content: text.join('\n') },
    { path: 'refs/times.md', content: 'high at noon' },
    { path: 'run.sh', content: '#!/bin/sh\necho low at six\n', executable: true },
  ])
  await create('knots', [{ path: 'SKILL.md', content: 'Make a loop.' }])
  const run = '"$(dirname "$(find / -path "*skills/tides/run.sh" -not -path "*/proc/*" 2>/dev/null | head -1)")"'
  await says(stageOf(), [{ tool: { kind: 'shell', command: `${run}/run.sh > low.txt` } }, { text: 'Done.' }])
  const first = await plays(stageOf(), agent, {})
  expect(saidSkills(device.homeDir).toSorted()).toEqual(['svc:knots', 'svc:svc', 'svc:tides'])
  expect(readFileSync(join(agent.folder, 'low.txt'), 'utf8')).toBe('low at six\n')
  const manifest = await api.call<RunManifest>('GET', `/runs/${first.run.id}/manifest`)
  expect(manifest.skills.map(({ id }) => id)).toEqual(['workspace/knots', 'workspace/tides', 'workspace/svc'])
  expect(manifest.skillsLeftOut).toEqual([])
  expect(dataOf(first.events, 'error')).toEqual([])

  await api.call('PUT', `/skills/tides/agents/${agent.id}`, { enabled: false })
  await says(stageOf(), [{ text: 'Again.' }])
  await plays(stageOf(), agent, {})
  expect(saidSkills(device.homeDir).toSorted()).toEqual(['svc:knots', 'svc:svc'])
  const status = execFileSync('git', ['status', '--porcelain'], { cwd: agent.folder, encoding: 'utf8' })
  expect(status).toBe('?? low.txt\n')
  expect(existsSync(join(device.stateDir, 'own'))).toBe(true)
})

test('a run has the skill svc of its device, and not where it is off for the agent or the workspace', async () => {
  const { api, device } = stageOf()
  // Nobody is asked whether it may be read.
  const agent = await newAgent(stageOf(), 'Reader', { config: { permissions: { tools: { defaultMode: 'ask' } } } })
  const skillsOfNext = async () => {
    await says(stageOf(), [{ text: 'Done.' }])
    const { run, events } = await plays(stageOf(), agent, {})
    expect(dataOf(events, 'error')).toEqual([])
    const { skills } = await api.call<RunManifest>('GET', `/runs/${run.id}/manifest`)
    expect(skills.some(({ id }) => id === 'workspace/svc')).toBe(saidSkills(device.homeDir).includes('svc:svc'))
    return saidSkills(device.homeDir)
  }
  await says(stageOf(), [{ tool: { name: 'Skill', input: { skill: 'svc:svc' } } }, { text: 'Read.' }])
  const first = await plays(stageOf(), agent, {})
  expect(dataOf(first.events, 'tool_result')).toMatchObject([{ isError: false }])
  expect((await asked(stageOf())).join('')).toContain('svc task transition current --status done')

  expect(await skillsOfNext()).toContain('svc:svc')
  await api.call('PUT', `/skills/svc/agents/${agent.id}`, { enabled: false })
  expect(await skillsOfNext()).not.toContain('svc:svc')
  await api.call('DELETE', `/skills/svc/agents/${agent.id}`)
  await api.call('PATCH', '/skills/svc', { enabledByDefault: false })
  expect(await skillsOfNext()).not.toContain('svc:svc')
  await api.call('PUT', `/skills/svc/agents/${agent.id}`, { enabled: true })
  expect(await skillsOfNext()).toContain('svc:svc')
  await api.call('PATCH', '/skills/svc', { enabledByDefault: true })
})

test('a daemon that is killed while it brings a skill leaves nothing that counts, and the run has it in the end', async () => {
  const { stub, binDir, modelUrl } = stageOf()
  const system = await TestSystem.start({ devices: 0, withProxy: true, device: { isWalled: true } })
  try {
    const { api, proxy } = system
    const device = system.makeDevice()
    listening.install(device.homeDir, { binDir, modelUrl })
    await device.enrol(api, proxy.url)
    await device.start()
    const stage: Stage = { ...stageOf(), system, api, device, stub }
    const agent = await newAgent(stage, 'Diver')
    const large = Buffer.alloc(8 * 1024 * 1024, 'deep').toString('base64')
    const files = [
      { path: 'SKILL.md', content: 'Dive.' },
      { path: 'sea.bin', contentBase64: large },
    ]
    const skill = await api.call<Skill>('POST', '/skills', { slug: 'dive', name: 'Dive', bundle: { files } })
    let bytes = 0
    // The middle of the files never comes.
    proxy.intercept((chunk) => {
      if (chunk.includes('deepdeep')) bytes += chunk.length
      return bytes > 1_000_000 ? 'drop' : 'pass'
    })
    await says(stage, [{ text: 'Done.' }])
    const runId = await api.startRun(agent.id)
    const kept = () => (existsSync(join(device.stateDir, 'skills')) ? readdirSync(join(device.stateDir, 'skills')) : [])
    await waitFor(() => bytes > 1_000_000 && kept().includes('.new-1'), 'the skill is on its way')
    await device.kill9()
    expect(kept()).toEqual(['.new-1'])
    proxy.intercept(null)
    proxy.heal()
    await device.start()
    const { events } = await ended(stage, runId, 'completed')
    expect(dataOf(events, 'error')).toEqual([])
    expect(dataOf(events, 'skills')).toMatchObject([
      { workspace: { skills: [{ name: 'dive' }, { name: 'svc' }], leftOut: [] } },
    ])
    expect(saidSkills(device.homeDir).toSorted()).toEqual(['svc:dive', 'svc:svc'])
    expect(kept()).toEqual([skill.bundleHash])
    expect(execFileSync('git', ['status', '--porcelain'], { cwd: agent.folder, encoding: 'utf8' })).toBe('')
    expect(
      readdirSync(join(device.stateDir, 'own')).filter((id) => existsSync(join(device.stateDir, 'own', id, 'skills'))),
    ).toEqual([])
  } finally {
    await system.stop()
  }
})

test('a run has the skills and the MCP servers of a plugin while that is on, and runs nothing else of it', async () => {
  const { api, device } = stageOf()
  const mcp = await startMcpServer()
  try {
    const agent = await newAgent(stageOf(), 'Plugged', { config: { permissions: { tools: { defaultMode: 'full' } } } })
    const ran = join(device.homeDir, 'hook-ran')
    const hook = { type: 'command', command: `touch '${ran}'` }
    const servers = {
      pilot: { url: mcp.url },
      deck: { command: '${CLAUDE_PLUGIN_ROOT}/bin/deck', args: ['${PLUGIN_ROOT}/server.mjs'] },
    }
    const files = pluginFiles({ name: 'harbour', skills: { mooring: 'Moor it.' }, servers })
    const hooks = JSON.stringify({ hooks: { SessionStart: [{ hooks: [hook] }] } })
    const sent = bundleOf({ ...files, 'hooks/hooks.json': hooks, 'server.mjs': readFileSync(stdioServer, 'utf8') })
    const deck = { path: 'bin/deck', content: `#!/bin/sh\nexec '${process.execPath}' "$1"\n`, executable: true }
    const plugin = await api.call<Plugin>('POST', '/plugins', { bundle: { files: [...sent.files, deck] } })
    expect(plugin.notUsed).toMatchObject([{ name: 'bin' }, { name: 'hooks' }])
    const [ofProgram, ofAddress] = ['plugin-harbour-deck', 'plugin-harbour-pilot']
    const say = (name: string) => ({ tool: { name: `mcp__${name}__say`, input: { text: 'ahoy' } } })
    await says(stageOf(), [say(ofAddress), say(ofProgram), { text: 'Moored.' }])
    const { events } = await plays(stageOf(), agent, {})
    expect(saidSkills(device.homeDir)).toContain('svc:mooring')
    expect(saidServers(device.homeDir).toSorted()).toEqual([ofProgram, ofAddress])
    expect(mcp.of('tools/call')).toHaveLength(1)
    expect(dataOf(events, 'tool_result')).toMatchObject([
      { isError: false, output: 'said ahoy' },
      { isError: false, output: 'said ahoy' },
    ])
    expect(dataOf(events, 'error')).toEqual([])

    await api.call('POST', `/plugins/${plugin.id}/disable`)
    mcp.calls.length = 0
    await says(stageOf(), [{ text: 'Without it.' }])
    await plays(stageOf(), agent, {})
    expect(saidSkills(device.homeDir)).not.toContain('svc:mooring')
    expect(saidServers(device.homeDir)).toEqual([])
    expect(mcp.calls).toEqual([])
    expect(existsSync(ran)).toBe(false)
    expect(execFileSync('git', ['status', '--porcelain'], { cwd: agent.folder, encoding: 'utf8' })).toBe('')
    expect(
      readdirSync(join(device.stateDir, 'own')).filter((id) => existsSync(join(device.stateDir, 'own', id, 'plugins'))),
    ).toEqual([])
  } finally {
    await mcp.stop()
  }
})
