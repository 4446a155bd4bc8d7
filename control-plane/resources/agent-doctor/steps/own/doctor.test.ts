import { describe, expect, it } from 'vitest'
import { loadCatalog } from '../../../../catalog/catalog.ts'
import { diagnose, type DoctorDevice, type DoctorFacts } from './doctor.ts'
import type { HarnessState } from '../../../devices/readiness.ts'
import type { AgentRow } from '../../../agents/store.ts'

const healthyAgent = {
  environment: 'device',
  status: 'active',
  model: null,
  backupModel: null,
  reasoningEffort: null,
  maxTurns: null,
  fallbackHarness: null,
  protocol: null,
  skillFolders: null,
  command: null,
  transferredAt: null,
  agentMd: 'Work well.',
  tools: { allow: [], ask: [], deny: ['Bash'] },
} as unknown as AgentRow

const device = (changes: Partial<DoctorDevice> = {}): DoctorDevice => ({
  displayName: 'laptop',
  liveness: 'connected',
  runsBy: 'members',
  refuses: [],
  readiness: { claude: { installed: true, version: '1', signedIn: true, message: null } },
  isolation: 'full',
  ...changes,
})

const healthy: DoctorFacts = {
  agent: healthyAgent,
  harness: 'claude',
  model: null,
  backupModel: null,
  isBudgetSpent: false,
  cloud: { isOnInWorkspace: true, size: 'small, 2 GiB', image: 'svc-sandbox', keyTrouble: null },
  folder: { displayName: 'code' },
  devices: [device()],
  manager: null,
  permissionMode: 'ask',
  mcpLeftOut: [],
  mcpInVain: [],
  connectionsRefused: [],
  variablesLeftOut: [],
  skillsLeftOut: [],
}
const codes = (changes: Partial<DoctorFacts>) => diagnose({ ...healthy, ...changes }).map((warning) => warning.code)
const claude = (installed: boolean, signedIn: boolean | null) =>
  device({ readiness: { claude: { installed, version: null, signedIn, message: null } } })

describe('the agent doctor', () => {
  it('reports nothing for a healthy agent', () => {
    expect(codes({})).toEqual([])
  })

  it('checks the folder and its device', () => {
    expect(codes({ folder: null })).toEqual(['no_folder'])
    expect(codes({ folder: 'missing' })).toEqual(['folder_missing'])
    expect(codes({ devices: [] })).toEqual(['folder_device_gone'])
    expect(codes({ folder: null, devices: [] })).toEqual(['no_folder', 'no_device'])
    expect(codes({ devices: [device({ liveness: 'disconnected' })] })).toEqual(['device_disconnected'])
    expect(codes({ devices: [device({ liveness: 'retired' }), device()] })).toEqual([])
  })

  it('warns of a device whose runs can access the files of svc', () => {
    expect(codes({ devices: [device({ isolation: 'off' }), device()] })).toEqual(['device_not_isolated'])
    expect(codes({ devices: [device({ isolation: 'partial' }), device({ isolation: null })] })).toEqual([])
  })

  it('checks the harness on devices that reported', () => {
    expect(codes({ devices: [claude(false, null)] })).toEqual(['harness_not_installed'])
    expect(codes({ devices: [claude(true, false)] })).toEqual(['harness_not_signed_in'])
    expect(codes({ devices: [claude(true, null)] })).toEqual([])
    expect(codes({ devices: [claude(false, null), claude(true, true)] })).toEqual([])
    expect(codes({ devices: [device({ readiness: null })] })).toEqual([])
    expect(codes({ harness: 'codex' })).toEqual(['harness_not_installed'])
  })

  it('repeats what the devices say is to be done', () => {
    const found = (...states: Partial<HarnessState>[]) =>
      diagnose({
        ...healthy,
        devices: states.map((state, at) =>
          device({
            displayName: `d${at}`,
            readiness: { claude: { installed: true, version: '1', signedIn: true, message: null, ...state } },
          }),
        ),
      }).map(({ code, message }) => [code, message])
    const missing = { installed: false, message: 'install it with: npm' }
    const signedOut = { signedIn: false, message: 'run `claude` once' }
    // An old program may not even tell whether somebody is signed in.
    const old = { tooOld: true, signedIn: false, message: 'claude 1.0.0 is too old' }
    expect(found(missing)).toEqual([
      ['harness_not_installed', 'claude is not installed on d0. d0: install it with: npm'],
    ])
    expect(found(old)).toEqual([['harness_too_old', 'claude is too old on d0. d0: claude 1.0.0 is too old']])
    expect(found(signedOut, missing)).toEqual([
      ['harness_not_signed_in', 'claude is not signed in on d0. d0: run `claude` once'],
    ])
    expect(found(missing, old)).toEqual([['harness_too_old', 'claude is too old on d1. d1: claude 1.0.0 is too old']])
    expect(found(old, { tooOld: false })).toEqual([])
    expect(found({ ...signedOut, message: null })).toEqual([
      ['harness_not_signed_in', 'claude is not signed in on d0.'],
    ])
  })

  it('checks the fallback harness, too', () => {
    const fallback = (fallbackHarness: AgentRow['fallbackHarness'], changes: Partial<DoctorFacts> = {}) =>
      diagnose({ ...healthy, agent: { ...healthyAgent, fallbackHarness }, ...changes }).map(
        ({ code, param, message }) => [code, param, message],
      )
    const both = device({
      readiness: {
        claude: { installed: true, version: '1', signedIn: true, message: null },
        cursor: { installed: true, version: '1', signedIn: true, message: null },
      },
    })
    expect(fallback('cursor', { devices: [both] })).toEqual([])
    const names = [['harness_not_installed', 'fallbackHarness', expect.stringMatching(/^cursor is not installed/)]]
    expect(fallback('cursor')).toEqual(names)
    const ignored = (why: RegExp) => [['setting_ignored', 'fallbackHarness', expect.stringMatching(why)]]
    expect(fallback('claude')).toEqual(ignored(/on it already/))
    expect(fallback('claude', { devices: [] })).toContainEqual(ignored(/on it already/)[0])
    const command = { ...healthyAgent, command: 'make', fallbackHarness: 'claude' } as AgentRow
    expect(codes({ agent: command, harness: 'command' })).toEqual(['setting_ignored'])
    expect(fallback('cursor', { devices: [both], permissionMode: 'strict' })).toEqual(ignored(/the mode strict/))
  })

  it('warns of a command agent without a command', () => {
    expect(codes({ harness: 'command' })).toEqual(['command_missing'])
    expect(codes({ harness: 'command', agent: { ...healthyAgent, command: 'make' } })).toEqual([])
  })

  it('warns of permissions that allow everything', () => {
    const agent = { ...healthyAgent, tools: { allow: [], ask: [], deny: [] } }
    expect(codes({ agent, permissionMode: 'full' })).toEqual(['permissions_allow_everything'])
    expect(codes({ agent, permissionMode: 'strict' })).toEqual([])
    expect(codes({ permissionMode: 'full' })).toEqual([])
  })

  it('checks the manager, AGENT.md and the cloud', () => {
    expect(codes({ manager: 'missing' })).toEqual(['manager_missing'])
    expect(codes({ manager: 'present' })).toEqual([])
    expect(codes({ agent: { ...healthyAgent, agentMd: ' \n' } })).toEqual(['agent_md_empty'])
    const cloud: AgentRow = { ...healthyAgent, environment: 'cloud' }
    expect(codes({ agent: cloud, cloud: null, devices: [] })).toEqual(['cloud_disabled'])
    const on = { isOnInWorkspace: true, size: 'small, 2 GiB', image: 'svc-sandbox', keyTrouble: null }
    expect(codes({ agent: cloud, cloud: { ...on, isOnInWorkspace: false }, devices: [] })).toEqual(['cloud_disabled'])
    expect(codes({ agent: cloud, cloud: on, devices: [] })).toEqual(['cloud_sandbox'])
    const keyTrouble = { code: 'credential_unbrokerable', message: 'It has no key in the cloud.' }
    expect(codes({ agent: cloud, cloud: { ...on, keyTrouble }, devices: [] })).toEqual([
      'cloud_sandbox',
      'credential_unbrokerable',
    ])
  })

  it('checks the models and the effort', () => {
    const catalog = loadCatalog(null)
    const named = (name: string) => ({ name, entry: catalog.find(name) })
    const opus = named('claude-opus-4-5')
    expect(codes({ model: opus, backupModel: named('claude-sonnet-4-5') })).toEqual([])
    expect(codes({ model: named('claude-of-tomorrow') })).toEqual(['model_unknown'])
    expect(codes({ model: opus, backupModel: named('claude-of-tomorrow') })).toEqual(['model_unknown'])
    expect(codes({ model: named('gpt-5') })).toEqual(['model_not_of_harness'])
    const busy: AgentRow = { ...healthyAgent, reasoningEffort: 'xhigh' }
    expect(codes({ agent: busy, model: opus })).toEqual(['effort_not_supported'])
    expect(codes({ agent: { ...busy, reasoningEffort: 'low' }, model: opus })).toEqual([])
    expect(codes({ agent: busy })).toEqual([])
    // A command picks its model itself.
    const command = { agent: { ...healthyAgent, command: 'make' }, harness: 'command' as const }
    expect(codes({ ...command, model: named('unheard-of') })).toEqual([])
    // Harnesses that speak to many makers run any model.
    const cursor = device({ readiness: { cursor: { installed: true, version: null, signedIn: true, message: null } } })
    expect(codes({ harness: 'cursor', model: opus, devices: [cursor] })).toEqual([])
  })

  it('names the settings that the harness has nothing for', () => {
    const agent = { ...healthyAgent, backupModel: 'opus', maxTurns: 9, command: 'make' }
    const ignored = (changes: Partial<DoctorFacts>) =>
      diagnose({ ...healthy, agent, ...changes }).flatMap(({ code, param }) =>
        code === 'setting_ignored' ? [param] : [],
      )
    expect(ignored({})).toEqual([])
    expect(ignored({ harness: 'codex' })).toEqual([])
    expect(ignored({ harness: 'cursor' })).toEqual(['backupModel'])
    expect(ignored({ harness: 'command' })).toEqual(['backupModel', 'maxTurns'])
    expect(ignored({ harness: 'command', agent: { ...agent, protocol: 'acp' } })).toEqual(['backupModel'])
  })

  it('names the MCP servers of the workspace that its runs do not get, by reason', () => {
    const many = Array.from({ length: 12 }, (_, at) => ({ name: `s${at}`, reason: 'too_many' as const }))
    const found = diagnose({ ...healthy, mcpLeftOut: [{ name: 'web', reason: 'transport' }, ...many] })
    expect(found).toMatchObject([
      { code: 'mcp_server_ignored', param: 'mcpServers', message: expect.stringContaining('web: the harness') },
      { code: 'mcp_server_ignored', message: expect.stringContaining('s8, s9 and 2 more: ') },
    ])
  })

  it('says where the mode strict cannot hold', () => {
    const cursor = device({ readiness: { cursor: { installed: true, version: null, signedIn: true, message: null } } })
    const strict = { permissionMode: 'strict' as const }
    expect(codes({ harness: 'cursor', devices: [cursor], ...strict })).toEqual(['strict_not_held'])
    expect(codes(strict)).toEqual([])
    const own = { ...healthyAgent, command: 'qwen --acp' }
    expect(codes({ harness: 'command', agent: own, ...strict })).toEqual([])
    expect(codes({ harness: 'command', agent: { ...own, protocol: 'acp' }, ...strict })).toEqual(['strict_not_held'])
  })

  it('explains refused wakes', () => {
    expect(codes({ agent: { ...healthyAgent, status: 'idle' } })).toEqual(['not_active'])
    expect(codes({ isBudgetSpent: true })).toEqual(['budget_spent'])
  })

  it('explains runs that wait for the owner of the agent or of the device', () => {
    expect(codes({ agent: { ...healthyAgent, transferredAt: 1 } })).toEqual(['owner_not_agreed'])
    for (const runsBy of ['owner', 'admins'] as const)
      expect(codes({ devices: [device(), device({ runsBy })] })).toEqual(['device_restricted'])
    for (const refused of ['program', 'instructions', 'confidential'] as const) {
      const [only, ...others] = diagnose({ ...healthy, devices: [device({ runsBy: 'owner', refuses: [refused] })] })
      expect([only, others]).toMatchObject([{ code: 'device_restricted', severity: 'warning' }, []])
      expect(only!.message).toContain('takes none of its runs')
    }
  })

  it('names severity and setting of each warning', () => {
    for (const warning of diagnose({ ...healthy, folder: null, devices: [], manager: 'missing' })) {
      expect(['info', 'warning', 'error']).toContain(warning.severity)
      expect(warning.message).not.toBe('')
      expect(warning.param).not.toBe('')
    }
  })
})
