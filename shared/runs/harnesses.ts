/** Settings of an agent that not every harness can do something with. */
export const harnessSettings = ['model', 'backupModel', 'reasoningEffort', 'maxTurns', 'skillFolders'] as const
export type HarnessSetting = (typeof harnessSettings)[number]

/** The ways to speak to an MCP server: a program that is started, or a server on the network in one of two ways. */
export type McpTransport = 'stdio' | 'http' | 'sse'

/**
 * The facts about a harness. All code that depends on a harness reads them; nothing else compares names of harnesses.
 */
export interface HarnessFacts {
  /** The name for people. */
  label: string
  /** The harness's programs that may be installed, the usual one first. Empty: it is no program of its own. */
  programs: readonly string[]
  /** `own`: one maker's models only; `any`: whatever the agent names; `none`: it takes no model from svc. */
  models: 'own' | 'any' | 'none'
  /** Variables by which it takes a key of its provider, instead of what it is signed in with; the first that is set counts. */
  keyNames: readonly string[]
  /** True: the operator's key may pay for its models in the cloud. */
  takesCredits: boolean
  /** Names of models, in lower case, that it runs although the catalog does not know them. */
  modelNames: RegExp | null
  /** The harness runs models that are named with their provider (`provider/model`) and that no other harness claims. */
  takesProviders: boolean
  /** The harness runs the agent's own command: choosing it decides which program runs. */
  runsOwnCommand: boolean
  /** The harness keeps sessions that a later run may continue. */
  keepsSessions: boolean
  /** A session keeps the instructions it began with: with other ones a run begins a new session. */
  keepsInstructions: boolean
  /** The harness calls tools, which are counted and which the agent's permissions judge. */
  callsTools: boolean
  /** Names that rules have for the tools about which it asks, beside those of MCP servers. `*` stands for any characters. */
  tools: readonly string[]
  /** The harness asks about every call of a tool before it is made, so the mode `strict` can hold. */
  holdsStrict: boolean
  /** Settings of the agent that it has nothing for; the agent's doctor and the manifest of a run say so. */
  ignores: readonly HarnessSetting[]
  /** The prompt that makes a session smaller; null: there is none. */
  compactCommand: string | null
  /** The harness goes on with the backup model by itself when its provider fails; svc does it for others, with another run. */
  changesModel: boolean
  /** The kinds of MCP servers that svc can give it. */
  mcpTransports: readonly McpTransport[]
  /** The harness takes MCP servers also where the agent's lists have no say. */
  takesMcpUnasked: boolean
  /** The harness prints something right after its start, so one that stays silent has failed to start. */
  speaksFirst: boolean
}

const words = (text: string): readonly string[] => text.split(' ')

/** A program that speaks ACP tells only what kind of call it makes (device-manager/harness/acp/calls.ts). */
const acpTools = words('Bash Read Write Edit WebFetch acp__*')

/** An agent program that is driven by messages, like most harnesses. */
const agentProgram = {
  takesCredits: false,
  takesProviders: false,
  runsOwnCommand: false,
  keepsSessions: true,
  keepsInstructions: true,
  callsTools: true,
  holdsStrict: true,
  ignores: [],
  compactCommand: null,
  changesModel: false,
  mcpTransports: ['stdio', 'http', 'sse'],
  takesMcpUnasked: true,
  speaksFirst: true,
} as const

/** Harnesses are listed everywhere in this order. A name is never removed once agents may have it. */
const table = {
  claude: {
    ...agentProgram,
    keepsInstructions: false,
    compactCommand: '/compact',
    changesModel: true,
    takesCredits: true,
    label: 'Claude Code',
    programs: ['claude'],
    // The tools are those of all versions, since nobody knows here which one a device has.
    tools: words(
      'Agent AskUserQuestion Bash BashOutput CronCreate CronDelete CronList Edit EnterPlanMode EnterWorktree ExitPlanMode ExitWorktree Glob Grep KillBash KillShell LS ListAgents ListMcpResourcesTool Monitor MultiEdit NotebookEdit NotebookRead Read ReadMcpResourceTool ReportFindings ScheduleWakeup SendMessage Skill SlashCommand StructuredOutput Task TaskCreate TaskGet TaskList TaskOutput TaskStop TaskUpdate TodoRead TodoWrite ToolSearch WebFetch WebSearch Workflow Write',
    ),
    keyNames: ['ANTHROPIC_AUTH_TOKEN', 'ANTHROPIC_API_KEY', 'CLAUDE_CODE_OAUTH_TOKEN'],
    models: 'own',
    modelNames: /^(anthropic\/)?(claude|opus|sonnet|haiku|fable)/,
  },
  opencode: {
    ...agentProgram,
    keepsInstructions: false,
    label: 'OpenCode',
    programs: ['opencode'],
    // The names are those of device-manager/harness/opencode/calls.ts; other tools keep their own name.
    tools: words(
      'Bash Read Write Edit Glob Grep LS WebFetch WebSearch Task TodoWrite TodoRead Skill batch codesearch lsp multiedit plan_enter plan_exit question',
    ),
    // The provider of the model decides which one counts.
    keyNames: [],
    models: 'any',
    modelNames: null,
    takesProviders: true,
  },
  cursor: {
    ...agentProgram,
    holdsStrict: false,
    // Cursor's print mode reads only the servers of files.
    takesMcpUnasked: false,
    // The backup model is ignored, since nobody could try what Cursor does after its provider failed; its names of models say the effort.
    ignores: ['backupModel', 'reasoningEffort', 'skillFolders'],
    label: 'Cursor',
    // The program's newer name, `agent`, is too common to be taken for Cursor's.
    programs: ['cursor-agent'],
    tools: acpTools,
    keyNames: ['CURSOR_API_KEY'],
    models: 'any',
    modelNames: /^(cursor|composer)/,
  },
  codex: {
    ...agentProgram,
    takesCredits: true,
    // Codex has no client for the old SSE.
    mcpTransports: ['stdio', 'http'],
    label: 'Codex',
    programs: ['codex'],
    // Codex asks before a command and a patch; it searches the web without asking.
    tools: words('Bash Write Edit'),
    keyNames: ['CODEX_API_KEY', 'OPENAI_API_KEY'],
    models: 'own',
    modelNames: /^(openai\/)?(gpt|o\d|codex|chatgpt)/,
  },
  command: {
    label: 'a command',
    programs: [],
    // The command steps of workflows are judged as calls of a shell, also of an agent that calls no tools.
    tools: ['Bash'],
    keyNames: [],
    takesCredits: false,
    models: 'none',
    modelNames: null,
    takesProviders: false,
    runsOwnCommand: true,
    keepsSessions: false,
    keepsInstructions: false,
    callsTools: false,
    // The mode has nothing to hold, since a command calls no tools.
    holdsStrict: true,
    ignores: ['model', 'backupModel', 'reasoningEffort', 'maxTurns', 'skillFolders'],
    compactCommand: null,
    changesModel: false,
    mcpTransports: [],
    takesMcpUnasked: false,
    speaksFirst: false,
  },
} as const satisfies Record<string, HarnessFacts>

export type HarnessName = keyof typeof table
export const harnesses: Readonly<Record<HarnessName, HarnessFacts>> = table
export const harnessNames = Object.keys(table) as [HarnessName, ...HarnessName[]]

/** The harnesses that are programs of their own: all that an agent may fall back on. */
export const agentPrograms = harnessNames.filter((name) => !harnesses[name].runsOwnCommand) as [
  HarnessName,
  ...HarnessName[],
]

/** A program that svc did not choose: what it asks and which model it takes is its own affair. */
const byProtocol = {
  runsOwnCommand: true,
  holdsStrict: false,
  tools: acpTools,
  ignores: ['model', 'backupModel', 'reasoningEffort', 'skillFolders'],
} as const

/** The facts about what a run is driven by: a command that speaks a protocol is an agent program, though not one that svc chose. */
export function harnessFactsOf({
  harness,
  protocol,
}: {
  harness: HarnessName
  protocol?: string | null | undefined
}): HarnessFacts {
  const facts: HarnessFacts = harnesses[harness]
  return facts.runsOwnCommand && protocol != null ? { ...facts, ...agentProgram, ...byProtocol } : facts
}

/** The harness of an agent without a chosen harness and model. */
export const defaultHarness: HarnessName = 'claude'
/** The harness that runs any command, without a program, a session or a model of its own. */
export const plainHarness: HarnessName = 'command'

/** Returns the provider whose service a run of the harness with this model depends on. */
export function providerOf(harness: HarnessName, model: string | null): string {
  const [provider, ...rest] = model?.split('/') ?? []
  return harnesses[harness].takesProviders && rest.length > 0 ? `${harness}/${provider}` : harness
}

/** The harness that runs a model that the catalog does not know, judged by the model's name. */
export function harnessByModelName(model: string): HarnessName {
  const name = model.toLowerCase()
  const first = (fits: (facts: HarnessFacts) => boolean) => harnessNames.find((each) => fits(harnesses[each]))
  const named = first(({ modelNames }) => modelNames?.test(name) === true)
  return named ?? (name.includes('/') ? first(({ takesProviders }) => takesProviders) : undefined) ?? defaultHarness
}
