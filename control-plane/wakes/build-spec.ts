import { gateCall } from '../../shared/permissions/gate-call.ts'
import { effectivePermissions } from '../../shared/permissions/effective.ts'
import { runLimits } from '../../shared/device/limits.ts'
import { type HarnessName, harnesses, plainHarness } from '../../shared/runs/harnesses.ts'
import { mcpServersFor } from '../../shared/runs/given-servers.ts'
import {
  reasoningEfforts,
  toolPermissionModes,
  type AllowedCall,
  type GateCommand,
  type RunSpec,
  type ToolPermissions,
} from '../../shared/runs/spec.ts'
import type { ModelCatalog } from '../catalog/catalog.ts'
import type { AgentRow } from '../resources/agents/store.ts'
import type { FolderRow } from '../resources/folders/store.ts'
import type { WorkspaceRow } from '../resources/workspaces/store.ts'
import { harnessOf } from '../catalog/harness-of.ts'
import { joinedInstructions, type Instructions } from './instructions.ts'

/** Settings of a task, conversation or automation; null: the agent's own. */
export interface RunOverrides {
  environment?: 'device' | 'cloud' | null
  harness?: HarnessName | null
  model?: string | null
  reasoningEffort?: RunSpec['reasoningEffort']
  speed?: RunSpec['speed']
  /** Makes the agent's own mode stricter, never looser. */
  toolMode?: ToolPermissions['defaultMode'] | null
}

/** A command that a workflow gave. */
export interface Gate {
  command: GateCommand
  timeoutMs: number
}

export interface SpecInput {
  runId: string
  agent: AgentRow
  workspace: WorkspaceRow
  instructions: readonly Instructions[]
  folder: FolderRow | null
  prompt: string
  allowCalls: readonly AllowedCall[]
  overrides?: RunOverrides
  resumeSessionId: string | null
  catalog: ModelCatalog
  limits?: Partial<RunSpec['limits']>
  gate?: Gate | null
}

/** All a device needs to execute the run, with the workspace's defaults filled in. */
export function buildSpec(input: SpecInput): RunSpec {
  const spec = agentSpec(input)
  return input.gate == null ? spec : gateSpec(spec, input.gate)
}

/** The run of a gate has the folder, the permissions and the secrets of its agent, and nothing that makes it one. */
function gateSpec(spec: RunSpec, { command, timeoutMs }: Gate): RunSpec {
  return {
    ...spec,
    harness: plainHarness,
    prompt: `Gate: ${gateCall(command).input.command}`,
    agentMd: '',
    model: null,
    backupModel: null,
    reasoningEffort: null,
    speed: null,
    maxTurns: null,
    command: null,
    protocol: null,
    gate: command,
    mcpServers: {},
    skillFolders: null,
    // It may be silent for as long as it may take.
    limits: { ...spec.limits, runMs: timeoutMs, noProgressMs: timeoutMs + gateSlackMs },
  }
}

/** The time of a gate is up before it counts as stuck. */
const gateSlackMs = 60_000

function agentSpec(input: SpecInput): RunSpec {
  const { agent, workspace, folder, overrides = {} } = input
  const { harness, model, backupModel } = programOf(input)
  const own = effectivePermissions({ ...agent.tools, defaultMode: agent.toolPermissionMode }, workspace)
  const permissions = { ...own, defaultMode: stricter(own.defaultMode, overrides.toolMode ?? null) }
  return {
    runId: input.runId,
    workspaceId: workspace.id,
    agent: { id: agent.id, handle: `@${agent.handle}`, name: agent.name },
    harness,
    folder: folder && { shortId: folder.shortId, rootPath: folder.rootPath },
    prompt: input.prompt,
    agentMd: joinedInstructions(input.instructions),
    model,
    backupModel,
    reasoningEffort: overrides.reasoningEffort ?? agent.reasoningEffort ?? effortOf(workspace.defaultReasoningEffort),
    speed: overrides.speed ?? null,
    maxTurns: agent.maxTurns ?? workspace.defaultMaxTurns,
    command: agent.command,
    protocol: agent.protocol,
    permissions,
    mcpServers: mcpServersFor(workspace.mcpServers, { harness, protocol: agent.protocol, permissions }).given,
    skillFolders: agent.skillFolders,
    allowCalls: [...input.allowCalls],
    resumeSessionId: input.resumeSessionId,
    limits: {
      runMs: runLimits.runMs,
      noProgressMs: runLimits.noProgressMs,
      firstEventMs: runLimits.firstEventMs,
      toolCalls: runLimits.toolCalls,
      silentMs: runLimits.silentMs,
      ...input.limits,
    },
  }
}

/** The modes are listed from the strictest on. */
function stricter(own: ToolPermissions['defaultMode'], other: ToolPermissions['defaultMode'] | null) {
  return toolPermissionModes.find((mode) => mode === own || mode === other) ?? own
}

/** Models of the agent are those of its own harness; one that was chosen for the run gets none that it does not run. */
function programOf({ agent, workspace, catalog, overrides = {} }: SpecInput): Program {
  const own = { model: agent.model ?? workspace.defaultModel, backupModel: agent.backupModel ?? workspace.backupModel }
  const chosen = overrides.model ?? null
  const harness = harnessOf(harnessOverrideOf(agent, overrides), chosen ?? own.model, catalog)
  if (harness === harnessOf(agent.harness, own.model, catalog))
    return { harness, model: chosen ?? own.model, backupModel: own.backupModel }
  const models = [chosen, ...[own.model, own.backupModel].filter((name) => runsModel(harness, name, catalog))]
  const [model = null, backupModel = null] = models.filter((name) => name !== null)
  return { harness, model, backupModel }
}

type Program = Pick<RunSpec, 'harness' | 'model' | 'backupModel'>

export function runsModel(harness: HarnessName, model: string | null | undefined, catalog: ModelCatalog): boolean {
  if (model == null) return false
  return harnessOf(null, model, catalog) === harness || (harnesses[harness].takesProviders && model.includes('/'))
}

/**
 * A model that was chosen for this run is not held to the harness that goes with the agent's own. No choice for one run makes
 * a command of an agent, or an agent of a command: that decides which program runs, which only the settings of the agent do.
 */
function harnessOverrideOf({ harness: own }: AgentRow, { harness: chosen, model }: RunOverrides): HarnessName | null {
  if (own !== null && harnesses[own].runsOwnCommand) return own
  if (chosen && !harnesses[chosen].runsOwnCommand) return chosen
  return model ? null : own
}

function effortOf(value: string | null): RunSpec['reasoningEffort'] {
  return reasoningEfforts.find((effort) => effort === value) ?? null
}
