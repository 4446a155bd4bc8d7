import type { AgentWarning } from '../../../../../shared/api/agents.ts'
import type { RunsBy } from '../../../../../shared/api/devices.ts'
import type { ProviderReadiness } from '../../../../../shared/device/protocol.ts'
import type { ModelEntry } from '../../../../catalog/catalog.ts'
import { type HarnessName, harnesses, harnessFactsOf } from '../../../../../shared/runs/harnesses.ts'
import {
  connectionWarnings,
  mcpInVainWarnings,
  mcpWarnings,
  skillWarnings,
  type RunInputFacts,
} from './run-input-warnings.ts'
import { forbidsSomething, ruleWarnings } from './rule-warnings.ts'
import { placeOfEnvironment } from '../../../../run/places/places.ts'
import { isReady, repeatAdvice } from '../../../devices/readiness.ts'
import type { LivenessStatus } from '../../../devices/rules.ts'
import type { AgentRow } from '../../../agents/store.ts'

// The agent doctor checks an agent's setup for what would keep its runs from working. It only warns.

export type RefusedPart = 'program' | 'instructions' | 'confidential'

export interface DoctorDevice {
  displayName: string
  liveness: LivenessStatus
  /** The people whose work the device takes. */
  runsBy: RunsBy
  /** The parts of the agent that keep all its runs from the device (docs/trust.md). */
  refuses: readonly RefusedPart[]
  readiness: ProviderReadiness['harnesses'] | null
  /** null: the device does not report it. */
  isolation: ProviderReadiness['isolation'] | null
}

export interface DoctorModel {
  name: string
  /** null: the catalog does not know it. */
  entry: ModelEntry | null
}

export interface CloudFacts {
  isOnInWorkspace: boolean
  /** The size as people read it: `small, 2 GiB`. */
  size: string
  image: string
  /** The reason why the agent's harness has no key there, as its wakes are refused; null: none is missing. */
  keyTrouble: { code: string; message: string } | null
}

export interface DoctorFacts extends RunInputFacts {
  agent: AgentRow
  harness: HarnessName
  /** The models its runs use after inheriting, as the catalog knows them; null: the harness's own default. */
  model: DoctorModel | null
  backupModel: DoctorModel | null
  isBudgetSpent: boolean
  /** The setup that takes its runs of the cloud; null: nothing does. */
  cloud: CloudFacts | null
  /** null: none is set; `missing`: it was removed. */
  folder: { displayName: string } | 'missing' | null
  /** Devices its runs may use; with a folder only the folder's device, and none if that was removed. */
  devices: readonly DoctorDevice[]
  /** null: it reports to nobody. */
  manager: 'present' | 'missing' | null
  /** The mode its runs use after inheriting. */
  permissionMode: 'strict' | 'ask' | 'full'
}

export function diagnose(facts: DoctorFacts): AgentWarning[] {
  const { agent } = facts
  return [
    ...(placeOfEnvironment(agent.environment).hasFolders
      ? [...deviceWarnings(facts), ...governanceWarnings(facts)]
      : cloudWarnings(facts)),
    ...fallbackWarnings(facts),
    ...modelWarnings(facts),
    ...setupWarnings(facts),
    ...ruleWarnings(facts),
    ...mcpWarnings(facts),
    ...mcpInVainWarnings(facts),
    ...connectionWarnings(facts),
    ...skillWarnings(facts),
  ]
}

const saidAs =
  (severity: AgentWarning['severity']) =>
  (code: string, param: string | null, message: string): AgentWarning => ({ code, severity, message, param })
const [error, warning, info] = [saidAs('error'), saidAs('warning'), saidAs('info')]

function deviceWarnings(facts: DoctorFacts): AgentWarning[] {
  const param = 'defaultFolderId'
  if (facts.folder === 'missing')
    return [error('folder_missing', param, 'Its default folder was removed; give it another one.')]
  const found: AgentWarning[] = []
  if (facts.folder === null)
    found.push(info('no_folder', param, 'It has no default folder, so its runs start in the home folder.'))
  const where = facts.folder === null ? null : facts.folder.displayName
  if (facts.devices.length === 0) {
    const message = where === null ? 'No device may take its runs.' : `The device of its folder ${where} was removed.`
    return [...found, error(where === null ? 'no_device' : 'folder_device_gone', param, message)]
  }
  if (!facts.devices.some((device) => device.liveness === 'connected')) {
    const names = facts.devices.map((device) => device.displayName).join(', ')
    const message = `Not connected: ${names}. Its runs wait until a device is.`
    found.push(warning('device_disconnected', param, message))
  }
  return [...found, ...isolationWarnings(facts), ...readinessWarnings(facts.harness, { ...facts, param: 'harness' })]
}

function isolationWarnings({ devices }: DoctorFacts): AgentWarning[] {
  const open = devices.filter((device) => device.isolation === 'off').map((device) => device.displayName)
  if (open.length === 0) return []
  const message = `Nothing keeps its runs on ${open.join(', ')} from the login and the files of svc there. See svc device status on that machine.`
  return [warning('device_not_isolated', null, message)]
}

/** Warnings about reasons why runs wait as `governance_refused`. */
function governanceWarnings({ agent, devices }: DoctorFacts): AgentWarning[] {
  const found: AgentWarning[] = []
  if (agent.transferredAt !== null) {
    const message =
      'It was given to its owner, who has not agreed yet, so it runs on none of their devices. `svc agent accept` agrees.'
    found.push(error('owner_not_agreed', 'ownerUserId', message))
  }
  for (const { displayName, runsBy, refuses } of devices) {
    for (const what of refuses)
      found.push(
        warning('device_restricted', 'defaultFolderId', `${displayName} takes none of its runs: ${why[what]}.`),
      )
    if (runsBy !== 'members' && refuses.length === 0) {
      const message = `${displayName} takes only the work of its owner${runsBy === 'admins' ? ' and of workspace admins' : ''}; what others ask for or wrote waits.`
      found.push(info('device_restricted', 'defaultFolderId', message))
    }
  }
  return found
}

const why: Record<RefusedPart, string> = {
  program: "the agent's owner, who decides what it runs, is nobody whose work the device takes",
  instructions: 'AGENT.md was last written by somebody whose work the device does not take',
  confidential:
    "it is private or given secrets, and the owner of the device is neither the agent's owner nor a workspace admin",
}

function fallbackWarnings({
  agent: { fallbackHarness },
  harness,
  devices,
  permissionMode,
}: Pick<DoctorFacts, 'agent' | 'harness' | 'devices' | 'permissionMode'>): AgentWarning[] {
  if (fallbackHarness === null) return []
  const param = 'fallbackHarness'
  const ignored = (why: string) => [warning('setting_ignored', param, `Its fallback harness has no effect: ${why}.`)]
  if (fallbackHarness === harness) return ignored('its runs are on it already')
  if (harnesses[harness].runsOwnCommand) return ignored('no limit of a provider is known of a command')
  const { holdsStrict, label } = harnesses[fallbackHarness]
  if (!holdsStrict && permissionMode === 'strict')
    return ignored(`${label} does not promise to ask before every tool, as the mode strict wants it`)
  return readinessWarnings(fallbackHarness, { devices, param })
}

/** Ignores devices that have not reported; one that is ready is enough. */
function readinessWarnings(
  harness: HarnessName,
  { devices, param }: Pick<DoctorFacts, 'devices'> & { param: string },
): AgentWarning[] {
  if (harnesses[harness].programs.length === 0) return []
  const reported = devices.flatMap((device) =>
    device.readiness === null ? [] : [{ device, state: device.readiness[harness] }],
  )
  if (reported.length === 0) return []
  if (reported.some(({ state }) => state !== undefined && isReady(state))) return []
  const found = (code: string, what: string, of: typeof reported) => {
    const names = of.map(({ device }) => device.displayName).join(', ')
    const advice = repeatAdvice(
      of.map(({ device, state }) => ({ device: device.displayName, message: state?.message ?? null })),
    )
    return [warning(code, param, `${harness} is ${what} on ${names}.${advice === '' ? '' : ` ${advice}`}`)]
  }
  const installed = reported.filter(({ state }) => state?.installed === true)
  if (installed.length === 0) return found('harness_not_installed', 'not installed', reported)
  const current = installed.filter(({ state }) => state?.tooOld !== true)
  if (current.length === 0) return found('harness_too_old', 'too old', installed)
  return found('harness_not_signed_in', 'not signed in', current)
}

function cloudWarnings({ cloud: setup }: DoctorFacts): AgentWarning[] {
  const param = 'environment'
  if (setup === null)
    return [error('cloud_disabled', param, 'Cloud runs are off on this server; its wakes are declined.')]
  if (!setup.isOnInWorkspace) {
    const message = 'Cloud runs are off in this workspace; its wakes are declined.'
    return [error('cloud_disabled', param, message)]
  }
  const { size, image, keyTrouble } = setup
  const where = info(
    'cloud_sandbox',
    'sandboxSize',
    `Its runs get sandboxes of the size ${size}, from the image ${image}.`,
  )
  return keyTrouble === null ? [where] : [where, error(keyTrouble.code, 'harness', keyTrouble.message)]
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
      found.push(warning('model_unknown', param, message))
    } else if (entry.harness !== harness && models === 'own')
      found.push(error('model_not_of_harness', param, `${harness} does not run the model ${name}.`))
  }
  check(model, 'model')
  check(backupModel, 'backupModel')
  const effort = agent.reasoningEffort
  if (effort !== null && model?.entry && !model.entry.efforts.includes(effort)) {
    const takes = model.entry.efforts.length === 0 ? 'none' : model.entry.efforts.join(', ')
    const message = `${model.name} does not take the effort ${effort} (it takes: ${takes}).`
    found.push(warning('effort_not_supported', 'reasoningEffort', message))
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
      warning(
        'setting_ignored',
        setting,
        `Its ${settingNames[setting]} has no effect: ${program} takes none from svc.`,
      ),
    )
}

function setupWarnings({ agent, harness, manager, permissionMode, isBudgetSpent }: DoctorFacts): AgentWarning[] {
  const found: AgentWarning[] = []
  if (agent.status !== 'active')
    found.push(info('not_active', 'status', `It is ${agent.status}; only an active agent takes wakes.`))
  if (isBudgetSpent) {
    const message = 'Its monthly budget is spent; its wakes are refused until the month ends.'
    found.push(warning('budget_spent', 'monthlyBudgetCents', message))
  }
  const { runsOwnCommand, callsTools, holdsStrict, label } = harnessFactsOf({ harness, protocol: agent.protocol })
  if (runsOwnCommand && agent.command === null)
    found.push(
      error('command_missing', 'command', 'Its harness is `command` and no command is set; its runs cannot start.'),
    )
  if (!holdsStrict && permissionMode === 'strict') {
    const message = `${runsOwnCommand ? 'ACP' : label} does not promise to ask before every tool, so runs do not start in the mode strict.`
    found.push(error('strict_not_held', 'permissions.tools', message))
  }
  found.push(...ignoredWarnings({ agent, harness }))
  if (permissionMode === 'full' && !forbidsSomething({ agent, harness }) && callsTools) {
    const message = 'Every tool runs without asking, and none is denied.'
    found.push(warning('permissions_allow_everything', 'permissions.tools', message))
  }
  if (manager === 'missing') found.push(warning('manager_missing', 'reportingTo', 'The agent it reports to is gone.'))
  if (agent.agentMd.trim() === '')
    found.push(info('agent_md_empty', 'agentMd', 'Its AGENT.md is empty: it has no instructions.'))
  return found
}
