import type { ActorRef, AgentRef, AgentUuid, DeviceRef, PersonUuid } from '../../../shared/lib/ids.ts'
import type { AgentStatus } from '../../../shared/api/agents.ts'
import type { AgentConfig, AgentConfigPatch } from '../../../shared/api/agent-config.ts'
import { hasRole, type Caller } from '../../http/callers.ts'
import { harnessFactsOf } from '../../../shared/runs/harnesses.ts'
import type { AgentRow } from './store.ts'
import { withoutUndefined } from '../../../shared/lib/without-undefined.ts'

// Decisions about agents.

/** The allowed changes of the status; all others are refused. */
const transitions: Readonly<Record<AgentStatus, readonly AgentStatus[]>> = {
  active: ['running', 'terminated'],
  idle: ['running', 'terminated'],
  running: ['idle', 'active', 'error', 'terminated'],
  error: ['idle', 'active', 'terminated'],
  terminated: [],
}

export const nextAgentStatuses = (from: AgentStatus): readonly AgentStatus[] => transitions[from]

/** Keeping the same status is always allowed. */
export const mayMove = (from: AgentStatus, to: AgentStatus): boolean => from === to || transitions[from].includes(to)

/** The viewer for whom a list is made. */
export interface Viewer {
  /** Workspace admins see private agents, too. */
  seesAll: boolean
  personUuid: PersonUuid | null
  /** The calling agent, which sees itself. */
  agentRef: ActorRef | null
}

export function viewerOfAgents(caller: Caller): Viewer {
  return caller.kind === 'person'
    ? { seesAll: hasRole(caller, 'admin'), personUuid: caller.personUuid, agentRef: null }
    : { seesAll: false, personUuid: null, agentRef: caller.agentRef }
}

type Seen = Pick<AgentRow, 'id' | 'visibility' | 'ownerUuid'>

/** A private agent is visible to its owner, workspace admins and itself. */
export function isAgentVisible(agent: Seen, viewer: Viewer): boolean {
  if (agent.visibility === 'company' || viewer.seesAll) return true
  if (viewer.agentRef !== null) return viewer.agentRef === agent.id
  return agent.ownerUuid !== null && agent.ownerUuid === viewer.personUuid
}

/** Returns whether the caller may set the agent's default folder and repo: only its owner and workspace admins may. */
export function ownsOrAdministersAgent(agent: Pick<AgentRow, 'ownerUuid'>, caller: Caller): boolean {
  return caller.kind === 'person' && (hasRole(caller, 'admin') || agent.ownerUuid === caller.personUuid)
}

/** Returns whether an agent may start in a folder: in the caller's, in its owner's, or on the default device that all runs may use. */
export function mayUseFolder(facts: {
  folder: { createdByUuid: PersonUuid; device: DeviceRef }
  agent: Pick<AgentRow, 'ownerUuid'>
  caller: Caller
  defaultDevice: DeviceRef | null
}): boolean {
  const { folder, agent, caller } = facts
  if (!ownsOrAdministersAgent(agent, caller)) return false
  if (hasRole(caller, 'admin') || folder.device === facts.defaultDevice) return true
  return (
    folder.createdByUuid === agent.ownerUuid || (caller.kind === 'person' && folder.createdByUuid === caller.personUuid)
  )
}

/** Words with a meaning as references, which cannot be handles. */
const reserved = new Set(['me', 'current'])
const longestHandle = 60

/** Letters that normalisation does not split into a base letter and its marks. */
const ligatures: Readonly<Record<string, string>> = {
  ß: 'ss',
  æ: 'ae',
  œ: 'oe',
  ø: 'o',
  ł: 'l',
  đ: 'd',
  ð: 'd',
  þ: 'th',
}

/** A lower-case slug of a name, empty when no letter or digit of it is usable. */
export function slugOf(name: string): string {
  return name
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .toLowerCase()
    .replaceAll(/[ßæœøłđðþ]/g, (letter) => ligatures[letter] ?? letter)
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, longestHandle)
    .replaceAll(/^-+|-+$/g, '')
}

/** The first of `slug`, `slug-2`, `slug-3`, ... that is free. */
export function freeHandle(slug: string, taken: ReadonlySet<string>): string {
  if (!taken.has(slug) && !reserved.has(slug)) return slug
  for (let suffix = 2; ; suffix++) {
    const handle = `${slug}-${suffix}`
    if (!taken.has(handle)) return handle
  }
}

/** Returns whether `handle` could have been made from `slug`, so that a rename to the same slug keeps it. */
export function isHandleOf(handle: string, slug: string): boolean {
  return handle === slug || (handle.startsWith(`${slug}-`) && /^\d+$/.test(handle.slice(slug.length + 1)))
}

/** Returns whether the new manager reports to this agent, directly or not, or is the agent itself. `chain`: the manager and those above. */
export function isReportingCycle(agentUuid: AgentUuid, chain: readonly { uuid: AgentUuid }[]): boolean {
  return chain.some((manager) => manager.uuid === agentUuid)
}

export function configOf(agent: AgentRow): AgentConfig {
  return {
    runtime: {
      model: agent.model,
      backupModel: agent.backupModel,
      reasoningEffort: agent.reasoningEffort,
      sandboxSize: agent.sandboxSize,
      harness: agent.harness,
      fallbackHarness: agent.fallbackHarness,
      environment: agent.environment,
      maxTurns: agent.maxTurns,
      monthlyBudgetCents: agent.monthlyBudgetCents,
      command: agent.command,
      protocol: agent.protocol,
      skillFolders: agent.skillFolders,
      triggers: { wakeOnAssignment: agent.wakeOnAssignment, wakeOnHook: agent.wakeOnHook },
    },
    permissions: {
      tools: { ...agent.tools, defaultMode: agent.toolPermissionMode },
      capabilities: agent.capabilities as AgentConfig['permissions']['capabilities'],
    },
  }
}

/** The agent with the settings that are present in `patch`; null inherits, absent keys stay. */
export function withConfig(agent: AgentRow, patch: AgentConfigPatch): AgentRow {
  const { triggers, ...runtime } = patch.runtime ?? {}
  const { defaultMode, ...lists } = patch.permissions?.tools ?? {}
  const { capabilities } = patch.permissions ?? {}
  return {
    ...agent,
    ...withoutUndefined({ ...runtime, ...triggers, toolPermissionMode: defaultMode }),
    tools: { ...agent.tools, ...withoutUndefined(lists) },
    ...(capabilities === undefined ? {} : { capabilities: [...new Set(capabilities)] }),
  }
}

/** The fields that show no use of an agent yet. */
export const newAgentState = {
  spentNanoUsd: 0,
  spentMonth: null,
  transferredAt: null,
  sessionsResetAt: null,
  lastRunAt: null,
  tokenGeneration: 1,
  deletedAt: null,
  version: 1,
} as const

/**
 * A copy of the agent under a new name. Rights that only an admin grants (capabilities, tools allowed without asking)
 * are kept only in an admin's copy, so that nobody can copy themselves an agent with more rights.
 */
export function copyOf(
  source: AgentRow,
  copy: {
    id: AgentRef
    uuid: AgentUuid
    name: string
    ownerUuid: PersonUuid
    keepsPermissions: boolean
    now: number
  },
): AgentRow {
  const { keepsPermissions, now, ...own } = copy
  return {
    ...source,
    ...own,
    handle: '',
    status: 'active',
    tools: keepsPermissions ? source.tools : { ...source.tools, allow: [] },
    capabilities: keepsPermissions ? source.capabilities : [],
    ...newAgentState,
    createdAt: now,
    updatedAt: now,
  }
}

/** The settings and AGENT.md, which revisions keep. */
export const revisedOf = (agent: AgentRow) => ({ ...configOf(agent), agentMd: agent.agentMd })

/** Dotted names of the settings that differ; lists and triggers count as a whole. */
export function changedKeys(before: AgentRow, after: AgentRow): string[] {
  const [a, b] = [flatten(revisedOf(before)), flatten(revisedOf(after))]
  return Object.keys(b).filter((key) => JSON.stringify(a[key]) !== JSON.stringify(b[key]))
}

function flatten(revised: ReturnType<typeof revisedOf>): Record<string, unknown> {
  const { runtime, permissions, agentMd } = revised
  const named = (prefix: string, group: object) =>
    Object.entries(group).map(([key, value]) => [`${prefix}.${key}`, value] as const)
  const { triggers, ...plain } = runtime
  return Object.fromEntries([
    ...named('runtime', plain),
    ...named('runtime.triggers', triggers),
    ...named('permissions.tools', permissions.tools),
    ['permissions.capabilities', permissions.capabilities],
    ['agentMd', agentMd],
  ])
}

/** The program, and what a session was told at its beginning. */
const sessionKeys: readonly string[] = [
  'runtime.harness',
  'runtime.command',
  'runtime.protocol',
  'runtime.skillFolders',
]

/**
 * Returns whether sessions that were begun before a change of these settings are not continued: another program runs, the skills are
 * others, or a session keeps the instructions it began with. What was said in them is then told anew.
 */
export function endsSessions({ harness, protocol }: AgentRow, keys: readonly string[]): boolean {
  if (keys.some((key) => sessionKeys.includes(key))) return true
  return keys.includes('agentMd') && harness !== null && harnessFactsOf({ harness, protocol }).keepsInstructions
}

export function describeChange(keys: readonly string[]): string {
  return `Changed ${keys.join(', ')}.`
}
