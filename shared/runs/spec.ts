import { z } from 'zod'
import { anyId } from '../lib/id-schema.ts'
import type { AgentRef, RunId, WorkspaceUuid } from '../lib/ids.ts'
import { brokeredModel } from './brokered.ts'
import { harnessNames, harnessFactsOf } from './harnesses.ts'
import { inputDigest } from './asked-call.ts'
import { connectionVariables, mostWithVariables } from './connection-variables.ts'
import { mcpServers } from './mcp-servers.ts'
import { runRepo } from './repo.ts'
import { leftOutSkill, offeredSkill, skillFolders, runSkillLimits, toldLeftOut } from './skills.ts'

/** A rule of an agent's tool lists: a tool name or a pattern. */
export const toolRule = z.union([
  z.string().min(1).max(500),
  z.object({ tool: z.string().min(1).max(200), pattern: z.string().max(500) }).meta({ id: 'ToolPattern' }),
])
export type ToolRule = z.infer<typeof toolRule>

export const toolPermissionModes = ['strict', 'ask', 'full'] as const
export const toolPermissions = z.object({
  allow: z.array(toolRule).max(500),
  ask: z.array(toolRule).max(500),
  deny: z.array(toolRule).max(500),
  defaultMode: z.enum(toolPermissionModes),
})
export type ToolPermissions = z.infer<typeof toolPermissions>

/** The speeds at which some models can answer. */
export const speeds = ['standard', 'fast'] as const
export type Speed = (typeof speeds)[number]

export const reasoningEfforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const

/** A command line for the `command` harness: a string for the login shell, or an argv array. */
export const harnessCommand = z.union([z.string().min(1).max(16_384), z.array(z.string().max(16_384)).min(1).max(256)])
export type HarnessCommand = z.infer<typeof harnessCommand>

/** The protocol by which svc speaks to the program of the `command` harness: the Agent Client Protocol. Without one, it is a plain program. */
export const commandProtocols = ['acp'] as const

/** A tool call that a person approved: allowed once, by its digest. */
export const allowedCall = z.object({
  name: z.string().min(1).max(200),
  inputDigest,
  /** `apr_...` */
  approvalId: z.string().max(64),
})
export type AllowedCall = z.infer<typeof allowedCall>

/** A command that a program gave (a `gate` step of a workflow), which is judged as the shell call that it is before it starts. */
export const stepCommand = z.object({
  argv: z.array(z.string().max(16_384)).min(1).max(256),
  /** The folder of the command, seen from that of the run, which it must not leave; null: that folder itself. */
  cwd: z.string().min(1).max(4_096).nullable(),
  /** A rule must allow it: neither the mode nor a person can. */
  needsRule: z.boolean(),
})
export type StepCommand = z.infer<typeof stepCommand>

/**
 * A spec holds everything that a device needs to execute one run. It is sent with the offer, journalled, and never changed. The run's token
 * and the values of secrets are not part of it: they come with `run.start` and are kept in memory only.
 */
export const runSpec = z.object({
  runId: anyId<RunId>(),
  workspaceId: anyId<WorkspaceUuid>(),
  agent: z.object({ id: anyId<AgentRef>(), handle: z.string(), name: z.string() }),
  harness: z.enum(harnessNames),
  /** The folder; null: the person's home folder. */
  folder: z.object({ shortId: z.string(), rootPath: z.string() }).nullable(),
  prompt: z.string(),
  agentMd: z.string(),
  model: z.string().nullable(),
  backupModel: z.string().nullable(),
  reasoningEffort: z.enum(reasoningEfforts).nullable(),
  /** The speed; null or left out: the machine's own settings decide. */
  speed: z.enum(speeds).nullish(),
  maxTurns: z.number().int().min(1).max(1000).nullable(),
  command: harnessCommand.nullable(),
  /** The protocol of the command; null or left out: it is a plain program. */
  protocol: z.enum(commandProtocols).nullish(),
  /**
   * The command that the run does instead of `command`, which is null then, so that a device which knows of no such steps starts nothing.
   */
  gate: stepCommand.nullish(),
  permissions: toolPermissions,
  /** Calls that a person approved, each allowed once. */
  allowCalls: z.array(allowedCall).max(100).default([]),
  /** The way of a run in a sandbox to its model; null or left out: its harness finds the way by itself. */
  brokeredModel: brokeredModel.nullish(),
  /** The repository that is cloned into the folder of a run in a sandbox before it starts; null or left out: none. */
  repo: runRepo.nullish(),
  /** Variables of connections, beside the secrets of the agent, which win; null or left out: none. */
  mcpServers: mcpServers.default({}),
  /** Beside the secrets of the agent, which win; null or left out: none. */
  connectionVariables: z.array(connectionVariables).max(mostWithVariables).nullish(),
  /** Folders of skills; null or left out: none. */
  skillFolders: skillFolders.nullish(),
  /** Skills of the workspace; null or left out: none. With those of the folders there are at most 200, and a name of a folder's wins. */
  skills: z.array(offeredSkill).max(runSkillLimits.skills).nullish(),
  /** Skills of the workspace that the agent has and the run does without; the device tells them with the others. */
  skillsLeftOut: z.array(leftOutSkill).max(toldLeftOut).nullish(),
  /**
   * The run has the skill `svc`, of which its device has the text. It does not count for the session, which would otherwise begin anew
   * with each release.
   */
  hasSvcSkill: z.boolean().nullish(),
  /**
   * The digest of the skills that the session has, null where nobody knows, with a session to continue where it or this run has skills.
   * Where the device finds others, the run begins a new session, with this prompt.
   */
  sessionSkills: z.object({ digest: z.string().max(64).nullable(), promptAnew: z.string() }).nullish(),
  /** The harness session to continue: that of the run this one continues. */
  resumeSessionId: z.string().nullable(),
  limits: z.object({
    /** The run's whole time, from its start. */
    runMs: z.number().int().positive(),
    noProgressMs: z.number().int().positive(),
    firstEventMs: z.number().int().positive(),
    toolCalls: z.number().int().positive(),
    /** The calls after which the agent is warned; null: it is not. */
    warnAtCalls: z.number().int().positive().nullish(),
    /** The longest that one call may take; null: as long as the run. */
    callMs: z.number().int().positive().nullish(),
    /** The device stops the harness after this long without the control plane. */
    silentMs: z.number().int().positive(),
  }),
})
export type RunSpec = z.infer<typeof runSpec>

type SkillsOfSpec = Pick<
  RunSpec,
  'harness' | 'protocol' | 'skillFolders' | 'skills' | 'skillsLeftOut' | 'hasSvcSkill' | 'sessionSkills'
>

/** Tells whether a harness can be given skills. */
export const canHaveSkills = (spec: Pick<SkillsOfSpec, 'harness' | 'protocol'>): boolean =>
  !harnessFactsOf(spec).ignores.includes('skillFolders')

/** Tells whether the run is to be given skills: of folders of its agent, or of the workspace. */
export const takesSkills = (spec: SkillsOfSpec): boolean =>
  canHaveSkills(spec) && (spec.skillFolders != null || (spec.skills ?? []).length > 0)

/** Tells whether the run is to be given the skill that is built in. */
export const takesSvcSkill = (spec: SkillsOfSpec): boolean => spec.hasSvcSkill === true && canHaveSkills(spec)

/** Tells whether the run's device tells which skills it has: also where it has none, and others would expect some. */
export const tellsSkills = (spec: SkillsOfSpec): boolean =>
  takesSkills(spec) ||
  takesSvcSkill(spec) ||
  (spec.skillsLeftOut ?? []).length > 0 ||
  (canHaveSkills(spec) && spec.sessionSkills != null)

type Mode = ToolPermissions['defaultMode']

/** Lists and mode of an agent as a run of it gets them: without a mode of its own that of the workspace, and without any `full`. */
export function effectivePermissions(
  agent: Pick<ToolPermissions, 'allow' | 'ask' | 'deny'> & { defaultMode: Mode | null },
  workspace: { toolPermissionDefault: Mode | null },
): ToolPermissions {
  const { allow, ask, deny, defaultMode } = agent
  return { allow, ask, deny, defaultMode: defaultMode ?? workspace.toolPermissionDefault ?? 'full' }
}
