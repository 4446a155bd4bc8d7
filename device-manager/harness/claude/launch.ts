import { join } from 'node:path'
import type { McpServer } from '../../../shared/runs/mcp-servers.ts'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import type { HarnessLaunch, LaunchFacts } from '../adapter.ts'
import { hasCallChecks } from '../../../shared/runs/call-checks.ts'
import { isAtLeast } from '../parts/version.ts'
import { skillsPlugin } from './skills.ts'

/**
 * `claude -p` with JSON lines in both directions. The prompt goes over standard input, so it has no size limit and is
 * not seen in the process list.
 */
export function claudeLaunch(spec: RunSpec, launch: LaunchFacts): HarnessLaunch {
  const agentMdFile = join(launch.runDir, 'AGENT.md')
  const hasAgentMd = spec.agentMd.trim() !== ''
  const mcpFile = join(launch.runDir, 'mcp.json')
  const servers = serversOf(spec, launch)
  const plugin = skillsPlugin(launch)
  return {
    file: 'claude',
    args: [
      ...protocolArgs,
      ...(hasCallChecks(spec) ? ownSettingsArgs(launch) : []),
      // Values are joined with `=`, so that none is taken for a flag; no list comes last, since it would take what follows.
      ...(spec.model === null ? [] : [`--model=${spec.model}`]),
      ...fallbackArgs(spec),
      ...effortArgs(spec),
      ...settingsArgs(spec, launch),
      ...(spec.maxTurns === null ? [] : [`--max-turns=${spec.maxTurns}`]),
      ...(hasAgentMd ? [`--append-system-prompt-file=${agentMdFile}`] : []),
      ...(servers === null ? [] : [`--mcp-config=${mcpFile}`]),
      ...plugin.args,
      ...(spec.resumeSessionId === null ? [] : resumeArgs(spec.resumeSessionId, launch.version)),
    ],
    env: hasCallChecks(spec)
      ? { ...launchEnv, ...readsAddedMemory, ...(Object.keys(spec.mcpServers).length > 0 && showsAllTools) }
      : launchEnv,
    io: 'pipes',
    files: [
      ...(hasAgentMd ? [{ path: agentMdFile, content: spec.agentMd }] : []),
      ...(servers === null ? [] : [{ path: mcpFile, content: JSON.stringify({ mcpServers: servers }) }]),
      ...plugin.files,
    ],
  }
}

/**
 * The servers as they were before variables were filled in: claude does that itself, in the same way and from the same
 * environment, and would do it once more with the values.
 */
function serversOf(spec: RunSpec, { mcpServers }: LaunchFacts): Record<string, McpServer> | null {
  const given = Object.entries(spec.mcpServers).filter(([name]) => Object.hasOwn(mcpServers, name))
  return given.length === 0 ? null : Object.fromEntries(given)
}

/**
 * The mode is `default` in all of svc's modes: the hook is asked before every tool call and decides by the agent's
 * lists (also where a person's settings allow the tool or disable hooks: theirs, not those of the protocol), so `bypassPermissions` (which fails open when a hook answer is lost, and is refused to root) is never needed.
 */
const protocolArgs: readonly string[] = [
  '-p',
  '--input-format=stream-json',
  '--output-format=stream-json',
  '--verbose',
  // Words come as they are made.
  '--include-partial-messages',
  '--permission-prompt-tool=stdio',
  '--permission-mode=default',
  // The first three wait for a person at a terminal. The last two promise a later turn, which an ended run has not.
  '--disallowedTools=AskUserQuestion,EnterPlanMode,ExitPlanMode,ScheduleWakeup,CronCreate',
]

/**
 * Where the agent's lists have a say, the settings of the repository do not count: its hooks, its helper for keys and its MCP
 * servers are programs, which claude starts without asking when no person sits before it (seen with 2.1.329). Its CLAUDE.md is
 * words, and is read by way of folders that are added: the agent's own, and those above it in its repository. claude takes them for
 * folders to work in, so none beyond is named; what they may be used for, svc's hook decides.
 */
const ownSettingsArgs = ({ repositoryFolders }: LaunchFacts): string[] => [
  '--setting-sources=user',
  ...repositoryFolders.map((folder) => `--add-dir=${folder}`),
]
const readsAddedMemory = { CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD: '1' }

/** Else claude hides the tools of servers behind a tool of its own, which a rule for the server does not allow. */
const showsAllTools = { ENABLE_TOOL_SEARCH: 'false' }

const launchEnv: Readonly<Record<string, string>> = {
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  DISABLE_AUTOUPDATER: '1',
  // The default of ten retries holds a run for minutes before it says why; trying again later is not the harness's work.
  CLAUDE_CODE_MAX_RETRIES: '3',
  // The result ends the run, so a task in the background could only be killed half done.
  CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: '1',
  // By this it says when no turn waits any more (rest.ts).
  CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS: '1',
}

/** claude refuses to start when both models are the same. */
function fallbackArgs({ model, backupModel }: RunSpec): string[] {
  return backupModel === null || backupModel === model ? [] : [`--fallback-model=${backupModel}`]
}

/**
 * claude knows nothing below `low`. `none` and `minimal` become `low`: leaving the flag out would mean claude's own
 * default, which is more than was asked for.
 */
function effortArgs({ reasoningEffort }: RunSpec): string[] {
  if (reasoningEffort === null) return []
  return [`--effort=${reasoningEffort === 'none' || reasoningEffort === 'minimal' ? 'low' : reasoningEffort}`]
}

/**
 * Its fast mode has no flag of its own; without a choice the person's settings stand. Models without it pass it over. Where lists
 * have a say, a skill may not have claude run commands while it is read: no hook is asked about those. For svc's own skill, which runs
 * none, those of the person are left as they are.
 */
function settingsArgs(spec: RunSpec, { skills }: LaunchFacts): string[] {
  const settings = {
    ...(spec.speed != null && { fastMode: spec.speed === 'fast' }),
    ...(skills.some(({ isBuiltin }) => isBuiltin !== true) &&
      hasCallChecks(spec) && { disableSkillShellExecution: true }),
  }
  return Object.keys(settings).length === 0 ? [] : [`--settings=${JSON.stringify(settings)}`]
}

/**
 * Newer versions keep the system prompt of a session's first turn, so a changed AGENT.md would be ignored on resume.
 * 2.1.197 does not know the flag and exits; where it came in between is not known, so it is given from 2.1.329 on.
 */
function resumeArgs(sessionId: string, version: string | null): string[] {
  return [`--resume=${sessionId}`, ...(isAtLeast(version, '2.1.329') ? ['--system-prompt-snapshot=off'] : [])]
}
