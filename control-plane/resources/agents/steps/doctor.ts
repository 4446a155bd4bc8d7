import type { AgentWarning } from '../../../../shared/api/agents.ts'
import type { RunsBy } from '../../../../shared/api/devices.ts'
import type { ProviderReadiness } from '../../../../shared/device/protocol.ts'
import type { ModelEntry } from '../../../catalog/catalog.ts'
import { type HarnessName, harnesses, harnessFactsOf } from '../../../../shared/runs/harnesses.ts'
import { sayLeftOut, type McpLeftOut } from '../../../../shared/runs/mcp-servers.ts'
import type { LivenessStatus } from '../../devices/rules.ts'
import type { AgentRow } from '../store.ts'

/** The agent doctor checks an agent's setup for what would keep its runs from working. It only warns. */

export interface DoctorDevice {
  displayName: string
  liveness: LivenessStatus
  /** The people whose wakes the device takes. */
  runsBy: RunsBy
  readiness: ProviderReadiness['harnesses'] | null
  /** null: the device does not report it. */
  isolation: ProviderReadiness['isolation'] | null
}

export interface DoctorModel {
  name: string
  /** null: the catalog does not know it. */
  entry: ModelEntry | null
}

export interface DoctorFacts {
  agent: AgentRow
  harness: HarnessName
  /** The models its runs use after inheriting, as the catalog knows them; null: the harness's own default. */
  model: DoctorModel | null
  backupModel: DoctorModel | null
  isBudgetSpent: boolean
  cloudEnabled: boolean
  /** null: none is set; `missing`: it was removed. */
  folder: { displayName: string } | 'missing' | null
  /** Devices its runs may use; with a folder only the folder's device, and none if that was removed. */
  devices: readonly DoctorDevice[]
  /** null: it reports to nobody. */
  manager: 'present' | 'missing' | null
  /** The mode its runs use after inheriting. */
  permissionMode: 'strict' | 'ask' | 'full'
  /** MCP servers of the workspace that its runs do not get. */
  mcpLeftOut: readonly McpLeftOut[]
}

export function diagnose(facts: DoctorFacts): AgentWarning[] {
  const { agent } = facts
  return [
    ...(agent.environment === 'device'
      ? [...deviceWarnings(facts), ...governanceWarnings(facts)]
      : cloudWarnings(facts)),
    ...fallbackWarnings(facts),
    ...modelWarnings(facts),
    ...setupWarnings(facts),
    ...mcpWarnings(facts),
  ]
}

const warning = (
  code: string,
  severity: AgentWarning['severity'],
  rest: { message: string; param: string | null },
): AgentWarning => ({ code, severity, ...rest })

function deviceWarnings(facts: DoctorFacts): AgentWarning[] {
  const param = 'defaultFolderId'
  if (facts.folder === 'missing')
    return [
      warning('folder_missing', 'error', { message: 'Its default folder was removed; give it another one.', param }),
    ]
  const found: AgentWarning[] = []
  if (facts.folder === null)
    found.push(
      warning('no_folder', 'info', {
        message: 'It has no default folder, so its runs start in the home folder.',
        param,
      }),
    )
  const where = facts.folder === null ? null : facts.folder.displayName
  if (facts.devices.length === 0) {
    const message = where === null ? 'No device may take its runs.' : `The device of its folder ${where} was removed.`
    return [...found, warning(where === null ? 'no_device' : 'folder_device_gone', 'error', { message, param })]
  }
  if (!facts.devices.some((device) => device.liveness === 'connected')) {
    const names = facts.devices.map((device) => device.displayName).join(', ')
    const message = `Not connected: ${names}. Its runs wait until a device is.`
    found.push(warning('device_disconnected', 'warning', { message, param }))
  }
  return [...found, ...isolationWarnings(facts), ...readinessWarnings(facts.harness, { ...facts, param: 'harness' })]
}

function isolationWarnings({ devices }: DoctorFacts): AgentWarning[] {
  const open = devices.filter((device) => device.isolation === 'off').map((device) => device.displayName)
  if (open.length === 0) return []
  const message = `Nothing keeps its runs on ${open.join(', ')} from the login and the files of svc there. See svc device status on that machine.`
  return [warning('device_not_isolated', 'warning', { message, param: null })]
}

/** Warnings about reasons why runs wait as `governance_refused`. */
function governanceWarnings({ agent, devices }: DoctorFacts): AgentWarning[] {
  const found: AgentWarning[] = []
  if (agent.transferredAt !== null)
    found.push(
      warning('owner_not_agreed', 'error', {
        message:
          'It was given to its owner, who has not agreed yet, so it runs on none of their devices. `svc agent accept` agrees.',
        param: 'ownerUserId',
      }),
    )
  for (const { displayName, runsBy } of devices)
    if (runsBy !== 'members')
      found.push(
        warning('device_restricted', 'info', {
          message: `${displayName} takes only wakes of its owner${runsBy === 'admins' ? ' and of workspace admins' : ''}; those of others wait.`,
          param: 'defaultFolderId',
        }),
      )
  return found
}

function fallbackWarnings({
  agent: { fallbackHarness },
  harness,
  devices,
  permissionMode,
}: Pick<DoctorFacts, 'agent' | 'harness' | 'devices' | 'permissionMode'>): AgentWarning[] {
  if (fallbackHarness === null) return []
  const param = 'fallbackHarness'
  const ignored = (why: string) => [
    warning('setting_ignored', 'warning', { message: `Its fallback harness has no effect: ${why}.`, param }),
  ]
  if (fallbackHarness === harness) return ignored('its runs are on it already')
  if (harnesses[harness].runsOwnCommand) return ignored('no limit of a provider is known of a command')
  const { holdsStrict, label } = harnesses[fallbackHarness]
  if (!holdsStrict && permissionMode === 'strict')
    return ignored(`${label} does not promise to ask before every tool, as the mode strict wants it`)
  return readinessWarnings(fallbackHarness, { devices, param })
}

/** Only devices that reported count; one that is ready is enough. */
function readinessWarnings(
  harness: HarnessName,
  { devices, param }: Pick<DoctorFacts, 'devices'> & { param: string },
): AgentWarning[] {
  if (harnesses[harness].programs.length === 0) return []
  const reported = devices.flatMap((device) =>
    device.readiness === null ? [] : [{ device, state: device.readiness[harness] }],
  )
  if (reported.length === 0) return []
  const installed = reported.filter(({ state }) => state?.installed === true)
  const names = reported.map(({ device }) => device.displayName).join(', ')
  if (installed.length === 0)
    return [warning('harness_not_installed', 'warning', { message: `${harness} is not installed on ${names}.`, param })]
  // null: the device cannot tell without using credentials.
  if (installed.some(({ state }) => state?.signedIn !== false)) return []
  return [warning('harness_not_signed_in', 'warning', { message: `${harness} is not signed in on ${names}.`, param })]
}

function cloudWarnings({ cloudEnabled }: DoctorFacts): AgentWarning[] {
  if (cloudEnabled) return []
  const message = 'Cloud runs are off on this server; its wakes are declined.'
  return [warning('cloud_disabled', 'error', { message, param: 'environment' })]
}

function modelWarnings({ agent, harness, model, backupModel }: DoctorFacts): AgentWarning[] {
  const { models } = harnesses[harness]
  // A command picks its model itself.
  if (models === 'none') return []
  const found: AgentWarning[] = []
  const check = (named: DoctorModel | null, param: string) => {
    if (named === null) return
    const { name, entry } = named
    if (entry === null) {
      const message = `The catalog does not know the model ${name}; its runs are priced only if ${harness} says their cost.`
      found.push(warning('model_unknown', 'warning', { message, param }))
    } else if (entry.harness !== harness && models === 'own')
      found.push(
        warning('model_not_of_harness', 'error', { message: `${harness} does not run the model ${name}.`, param }),
      )
  }
  check(model, 'model')
  check(backupModel, 'backupModel')
  const effort = agent.reasoningEffort
  if (effort !== null && model?.entry && !model.entry.efforts.includes(effort)) {
    const takes = model.entry.efforts.length === 0 ? 'none' : model.entry.efforts.join(', ')
    const message = `${model.name} does not take the effort ${effort} (it takes: ${takes}).`
    found.push(warning('effort_not_supported', 'warning', { message, param: 'reasoningEffort' }))
  }
  return found
}

const settingNames = {
  model: 'model',
  backupModel: 'backup model',
  reasoningEffort: 'reasoning effort',
  maxTurns: 'limit of turns',
  skillFolders: 'list of skill folders',
} as const

/** Settings that have no effect. */
function ignoredWarnings({ agent, harness }: Pick<DoctorFacts, 'agent' | 'harness'>): AgentWarning[] {
  const { ignores, label } = harnessFactsOf({ harness, protocol: agent.protocol })
  const program = agent.protocol === null ? label : `${label} that speaks ACP`
  return ignores
    .filter((setting) => agent[setting] !== null)
    .map((setting) =>
      warning('setting_ignored', 'warning', {
        message: `Its ${settingNames[setting]} has no effect: ${program} takes none from svc.`,
        param: setting,
      }),
    )
}

/** One for each reason. */
function mcpWarnings({ mcpLeftOut }: DoctorFacts): AgentWarning[] {
  const reasons = [...new Set(mcpLeftOut.map(({ reason }) => reason))]
  return reasons.map((reason) => {
    const names = mcpLeftOut.filter((each) => each.reason === reason).map(({ name }) => name)
    const more = names.length > mostNamed ? ` and ${names.length - mostNamed} more` : ''
    const message = `Its runs do not get MCP servers of the workspace, ${names.slice(0, mostNamed).join(', ')}${more}: ${sayLeftOut(reason)}.`
    return warning('mcp_server_ignored', 'warning', { message, param: 'mcpServers' })
  })
}
const mostNamed = 10

function setupWarnings({ agent, harness, manager, permissionMode, isBudgetSpent }: DoctorFacts): AgentWarning[] {
  const found: AgentWarning[] = []
  if (agent.status !== 'active')
    found.push(
      warning('not_active', 'info', {
        message: `It is ${agent.status}; only an active agent takes wakes.`,
        param: 'status',
      }),
    )
  if (isBudgetSpent)
    found.push(
      warning('budget_spent', 'warning', {
        message: 'Its monthly budget is spent; its wakes are refused until the month ends.',
        param: 'monthlyBudgetCents',
      }),
    )
  const { runsOwnCommand, callsTools, holdsStrict, label } = harnessFactsOf({ harness, protocol: agent.protocol })
  if (runsOwnCommand && agent.command === null)
    found.push(
      warning('command_missing', 'error', {
        message: 'Its harness is `command` and no command is set; its runs cannot start.',
        param: 'command',
      }),
    )
  if (!holdsStrict && permissionMode === 'strict')
    found.push(
      warning('strict_not_held', 'error', {
        message: `${runsOwnCommand ? 'ACP' : label} does not promise to ask before every tool, so runs do not start in the mode strict.`,
        param: 'permissions.tools',
      }),
    )
  found.push(...ignoredWarnings({ agent, harness }))
  const { deny, ask } = agent.tools
  if (permissionMode === 'full' && deny.length === 0 && ask.length === 0 && callsTools)
    found.push(
      warning('permissions_allow_everything', 'warning', {
        message: 'Every tool runs without asking, and none is denied.',
        param: 'permissions.tools',
      }),
    )
  if (manager === 'missing')
    found.push(
      warning('manager_missing', 'warning', { message: 'The agent it reports to is gone.', param: 'reportingTo' }),
    )
  if (agent.agentMd.trim() === '')
    found.push(
      warning('agent_md_empty', 'info', {
        message: 'Its AGENT.md is empty: it has no instructions.',
        param: 'agentMd',
      }),
    )
  return found
}
