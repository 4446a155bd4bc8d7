import type { AgentStatus } from '../../../shared/api/agents.ts'
import type { AgentConfig, AgentConfigPatch } from '../../../shared/api/agent-config.ts'
import { hasRole, type Caller } from '../../http/callers.ts'
import type { AgentRow } from './store.ts'

/** Decisions about agents (document 1, "Agent" and "States and transitions > Agent"). */

/** Moves of the status; every other one is refused. */
const transitions: Readonly<Record<AgentStatus, readonly AgentStatus[]>> = {
  active: ['running', 'terminated'],
  idle: ['running', 'terminated'],
  running: ['idle', 'active', 'error', 'terminated'],
  error: ['idle', 'active', 'terminated'],
  terminated: [],
}

export const nextStatuses = (from: AgentStatus): readonly AgentStatus[] => transitions[from]

/** Staying where it is, is no move (silence agents.sameStatus). */
export const mayMove = (from: AgentStatus, to: AgentStatus): boolean => from === to || transitions[from].includes(to)

/** Whose eyes a list is made for. */
export interface Viewer {
  /** Workspace admins see private agents too. */
  seesAll: boolean
  userId: string | null
  /** The agent that calls: it sees itself. */
  agentId: string | null
}

export function viewerOf(caller: Caller): Viewer {
  return caller.kind === 'person'
    ? { seesAll: hasRole(caller, 'admin'), userId: caller.userId, agentId: null }
    : { seesAll: false, userId: null, agentId: caller.agentId }
}

type Seen = Pick<AgentRow, 'id' | 'visibility' | 'ownerUserId'>

/** A private agent is its owner's, the workspace admins' and its own (silence agents.privateVisibility). */
export function isVisible(agent: Seen, viewer: Viewer): boolean {
  if (agent.visibility === 'company' || viewer.seesAll) return true
  if (viewer.agentId !== null) return viewer.agentId === agent.id
  return agent.ownerUserId !== null && agent.ownerUserId === viewer.userId
}

/** Default folder and repo are set by the agent's owner or a workspace admin. */
export function ownsOrAdministers(agent: Pick<AgentRow, 'ownerUserId'>, caller: Caller): boolean {
  return caller.kind === 'person' && (hasRole(caller, 'admin') || agent.ownerUserId === caller.userId)
}

/** Whose folder an agent may start in: the caller's own, its owner's, or one of the device all runs may go to. */
export function mayUseFolder(facts: {
  folder: { createdBy: string; device: string }
  agent: Pick<AgentRow, 'ownerUserId'>
  caller: Caller
  defaultDevice: string | null
}): boolean {
  const { folder, agent, caller } = facts
  if (!ownsOrAdministers(agent, caller)) return false
  if (hasRole(caller, 'admin') || folder.device === facts.defaultDevice) return true
  return folder.createdBy === agent.ownerUserId || (caller.kind === 'person' && folder.createdBy === caller.userId)
}

/** Words that a reference may be and no handle. */
const reserved = new Set(['me', 'current'])
const longestHandle = 60

/** Letters that do not come apart into a base letter and its marks. */
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

/** Lower-case slug of a name, empty when nothing of it can be written so (silence agents.handle). */
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

/** The first of `slug`, `slug-2`, `slug-3`, ... that nobody has. */
export function freeHandle(slug: string, taken: ReadonlySet<string>): string {
  if (!taken.has(slug) && !reserved.has(slug)) return slug
  for (let suffix = 2; ; suffix++) {
    const handle = `${slug}-${suffix}`
    if (!taken.has(handle)) return handle
  }
}

/** Whether `handle` is one that `slug` could have been given, so that a rename to the same slug keeps it. */
export function isHandleOf(handle: string, slug: string): boolean {
  return handle === slug || (handle.startsWith(`${slug}-`) && /^\d+$/.test(handle.slice(slug.length + 1)))
}

/** The new manager reports to this agent, directly or not, or is the agent itself. `chain`: the manager and those above. */
export function isReportingCycle(agentUuid: string, chain: readonly { uuid: string }[]): boolean {
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
      environment: agent.environment,
      maxTurns: agent.maxTurns,
      monthlyBudgetCents: agent.monthlyBudgetCents,
      command: agent.command,
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
    ...present(runtime),
    ...present(triggers ?? {}),
    tools: { ...agent.tools, ...present(lists) },
    ...(defaultMode === undefined ? {} : { toolPermissionMode: defaultMode }),
    ...(capabilities === undefined ? {} : { capabilities: [...new Set(capabilities)] }),
  }
}

/** Without the keys that are there but undefined. */
function present<T extends object>(value: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, item]) => item !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>
  }
}

/**
 * The agent under a new name. What only an admin grants (capabilities, tools allowed without asking) is kept for an
 * admin's copy only, so that nobody copies themselves an agent that may do more.
 */
export function copyOf(
  source: AgentRow,
  copy: { id: string; uuid: string; name: string; ownerUserId: string; keepsPermissions: boolean; now: number },
): AgentRow {
  const { keepsPermissions, now, ...own } = copy
  return {
    ...source,
    ...own,
    handle: '',
    status: 'active',
    tools: keepsPermissions ? source.tools : { ...source.tools, allow: [] },
    capabilities: keepsPermissions ? source.capabilities : [],
    spentNanoUsd: 0,
    spentMonth: null,
    transferredAt: null,
    sessionsResetAt: null,
    lastRunAt: null,
    tokenGeneration: 1,
    deletedAt: null,
    version: 1,
    createdAt: now,
    updatedAt: now,
  }
}

/** What a revision keeps: the settings and AGENT.md. */
export const revisedOf = (agent: AgentRow) => ({ ...configOf(agent), agentMd: agent.agentMd })

/** Dotted names of the settings that differ, lists and triggers as a whole. */
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

export function describeChange(keys: readonly string[]): string {
  return `Changed ${keys.join(', ')}.`
}
