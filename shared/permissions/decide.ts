import type { ToolPermissions, ToolRule } from '../runs/spec.ts'
import { mainInput, type CallInputs, type ToolCall } from './call-inputs.ts'
import { glob } from './patterns/glob.ts'
import { allowsUrl, forbidsUrl } from './patterns/url-rules.ts'
import { isOwnSvc } from './own-svc.ts'
import { matchesPath, ownFolderOf, type JudgedPlace, type PathFact } from './patterns/path-rules.ts'
import { readRule, ruleText, type ReadRule } from './rule.ts'
import { maxCommandChars, mayMatch, shellCommands, type ShellCommands } from './shell/commands.ts'
import { shellFragments, shellParts } from './shell/parts.ts'
import { steersWhatRuns } from './shell/steering.ts'

/** A call, and what it reaches for. */
export interface JudgedCall extends ToolCall {
  inputs: CallInputs
  /** Facts about `inputs.paths`; not needed where `needsPaths` says so. */
  paths: readonly PathFact[]
  /** A person allowed this very call. */
  approvalId?: string
}
export interface Decision {
  decision: 'allow' | 'deny' | 'ask'
  /** The rule that decided, as the agent's config has it; null when it was the default mode, or a doubt. */
  rule: string | null
  /** The reason of a denial, when no rule and no mode made it. */
  reason?: string
}

/**
 * Decides whether a tool call may be made: what cannot be judged and svc's own folders are denied, then come the deny list, what
 * a person allowed (`approvalId`, for this very call), the ask list, the allow list, and the default mode (strict denies,
 * ask asks, full allows). A rule that allows goes before one that asks only when it is the narrower of the two: it is what
 * a person wrote, or approved for always, about the wider one. Lists that forbid match generously, the list that allows
 * matches narrowly: a shell command is allowed by a pattern only when each of its parts is, and one that cannot be taken
 * apart for certain never is; a path only in every spelling. What the run needs of its own
 * `svc`, and to load the skill that tells of it, is allowed where no rule speaks of it.
 */
export function decide(permissions: ToolPermissions, place: JudgedPlace, judged: JudgedCall): Decision {
  let lines: ShellLine[] | undefined
  let otherLines: ShellLine[] | undefined
  const call: TakenApart = {
    ...judged,
    lines: () => (lines ??= judged.inputs.commands.map(lineOf)),
    otherLines: () => (otherLines ??= otherLinesOf(judged.inputs.others)),
    parts: remembered(allowedParts),
  }
  const refused = needsPaths(permissions, call) ? unjudged(call) : null
  if (refused !== null) return { decision: 'deny', rule: null, reason: refused }
  const isSvc = callsOwnSvc(place, call)
  const own = permissions.defaultMode === 'full' || isSvc ? null : reachedOwn(place, call)
  if (own !== null) return { decision: 'deny', rule: null, reason: own }
  const found = (rules: readonly ToolRule[], mode: 'forbid' | 'allow') =>
    rules.filter((rule) => matches(readRule(rule), place, call, mode))
  const [denied] = found(permissions.deny, 'forbid')
  if (denied) return { decision: 'deny', rule: ruleText(denied) }
  if (call.approvalId !== undefined) return { decision: 'allow', rule: `approval:${call.approvalId}` }
  const asking = found(permissions.ask, 'forbid')
  if (isSvc && asking.every(isAboutTool)) return { decision: 'allow', rule: ownSvcRule }
  if (loadsOwnSkill(place, call) && asking.length === 0) return { decision: 'allow', rule: ownSvcRule }
  const isNarrower = (rule: ToolRule) => asking.every((wide) => narrowness(rule) > narrowness(wide))
  const [allowed] = found(permissions.allow, 'allow').filter(isNarrower)
  if (allowed) return { decision: 'allow', rule: ruleText(allowed) }
  const together = allowedTogether(permissions.allow.filter(isNarrower), place, call)
  if (together !== null) return { decision: 'allow', rule: together }
  if (asking[0]) return { decision: 'ask', rule: ruleText(asking[0]) }
  const byMode = { strict: 'deny', ask: 'ask', full: 'allow' } as const
  return { decision: byMode[permissions.defaultMode], rule: null }
}

interface TakenApart extends JudgedCall {
  lines(): readonly ShellLine[]
  /** Returns the lines that fields which say nothing would be: never doubtful, since they are more likely none. */
  otherLines(): readonly ShellLine[]
  /** The simple commands of a line, for a list that allows. */
  parts(command: string): readonly string[] | null
}

/** Says whether anything depends on what the call's paths are: not in mode `full` without a rule about inputs of this tool. */
export function needsPaths({ defaultMode, ask, deny }: ToolPermissions, { name }: ToolCall): boolean {
  return (
    defaultMode !== 'full' || [...ask, ...deny].map(readRule).some((rule) => rule.pattern !== null && isOf(rule, name))
  )
}

/** The `permission` event names this as the rule for a call of the run's own `svc`. */
export const ownSvcRule = 'svc'

function callsOwnSvc(place: JudgedPlace, { name, inputs }: JudgedCall): boolean {
  const { commands, paths, urls } = inputs
  const isShell = name.toLowerCase() === 'bash' && commands.length === 1 && paths.length + urls.length === 0
  return isShell && isOwnSvc(commands[0]!, place.svcProgram)
}

/** Tells whether the call only reads the own skill: the text of this release, which allows nothing. */
function loadsOwnSkill(
  { svcSkill }: JudgedPlace,
  { name, input, inputs: { commands, paths, urls } }: JudgedCall,
): boolean {
  if (svcSkill === undefined || name !== 'Skill' || commands.length + paths.length + urls.length > 0) return false
  return (input as { skill?: unknown } | null)?.skill === svcSkill
}

function unjudged({ inputs, paths }: JudgedCall): string | null {
  if (inputs.doubt !== null) return inputs.doubt
  const doubtful = paths.find(({ doubt }) => doubt !== null)
  if (doubtful) return `${doubtful.doubt}: ${cutTo(doubtful.text)}`
  return paths.length === inputs.paths.length ? null : 'its paths were not looked up'
}

function reachedOwn(place: JudgedPlace, { name, paths, inputs }: JudgedCall): string | null {
  const isSearch = name.toLowerCase() === 'grep'
  const own = paths.map((path) => ownFolderOf(path, place, { isSearch })).find((folder) => folder !== null)
  if (own !== undefined) return `${own} holds files of svc itself`
  // The check of commands is no more than a help: a shell has other ways to name a folder.
  const commands = inputs.commands.map((command) => withoutSkills(command, place))
  const named = place.ownFolders.find((folder) => commands.some((command) => command.includes(folder)))
  return named === undefined ? null : `${named} holds files of svc itself`
}

/** The command without its words for the run's own skills, unless it leads out of their folder. */
function withoutSkills(command: string, { skillFolders = [] }: JudgedPlace): string {
  if (command.includes('..')) return command
  return skillFolders.reduce((text, folder) => text.replaceAll(`${folder}/`, ''), command)
}

/** Says whether the rule is about a tool whatever its input, and not about something in its input that nobody can read. */
function isAboutTool(rule: ToolRule): boolean {
  const { pattern, problem } = readRule(rule)
  return pattern === null && problem === null
}

/**
 * Ranks how much a rule leaves open: a tool by its name before several, an input before any, one text before a pattern. Nothing is
 * narrower than a rule that cannot be read.
 */
function narrowness(rule: ToolRule): number {
  const { tool, pattern, problem } = readRule(rule)
  if (problem !== null) return Infinity
  const ofTool = tool.includes('*') ? 0 : 1
  return ofTool * 3 + (pattern === null ? 0 : pattern.includes('*') ? 1 : 2)
}

/** The sentence that tells a model what to do about a refusal; nobody else needs it. */
export const adviceToModel = ' Go on without it.'

/** Returns what the harness is told of a call that may not be made. */
export function refusal(decision: Decision, call: ToolCall): string {
  const what = mainInput(call.input)
  const named = what === null ? call.name : `${call.name}(${cutTo(what)})`
  const why =
    decision.reason ??
    (decision.rule === null || decision.decision === 'ask'
      ? 'no rule allows it'
      : `the rule ${decision.rule} forbids it`)
  return `${named} was denied: ${why}.${adviceToModel}`
}
const cutTo = (text: string): string => (text.length > 200 ? `${text.slice(0, 200)}...` : text)

const isOf = ({ tool }: ReadRule, name: string): boolean => glob(tool.toLowerCase(), name.toLowerCase())

/** A list that forbids is met by any part of the input, one that allows by all that reaches for something. */
function matches(rule: ReadRule, place: JudgedPlace, call: TakenApart, mode: 'forbid' | 'allow'): boolean {
  if (!isOf(rule, call.name) || (rule.problem !== null && mode === 'allow')) return false
  if (rule.pattern === null) return true
  const { pattern } = rule
  const { commands, urls, texts, others } = call.inputs
  if (mode === 'forbid')
    return (
      call.lines().some((line) => forbidsLine(pattern, line)) ||
      call.paths.some((path) => matchesPath(pattern, path, place, mode)) ||
      urls.some((url) => forbidsUrl(pattern, url)) ||
      texts.some((text) => matchesText(pattern, text)) ||
      others.some((text) => matchesText(pattern, text)) ||
      call.otherLines().some((line) => forbidsLine(pattern, line))
    )
  const reaching = commands.length + call.paths.length + urls.length
  // A pattern says nothing about an input that it cannot be held against.
  if (reaching === 0) return texts.length > 0 && texts.every((text) => matchesText(pattern, text))
  return (
    commands.every((command) => call.parts(command)?.every((part) => matchesText(pattern, part)) ?? false) &&
    call.paths.every((path) => matchesPath(pattern, path, place, mode)) &&
    urls.every((url) => allowsUrl(pattern, url))
  )
}

function allowedParts(command: string): readonly string[] | null {
  const parts = command.length > maxCommandChars ? null : shellParts(command)
  return parts === null || steersWhatRuns(parts) ? null : parts
}

/** Remembers the answer for each text, since each rule asks. */
function remembered<Value>(find: (text: string) => Value): (text: string) => Value {
  const known = new Map<string, Value>()
  return (text) => {
    const value = known.has(text) ? known.get(text)! : find(text)
    known.set(text, value)
    return value
  }
}

/** Takes a command line apart, once for all rules. A line too long to be started is not taken apart. */
function lineOf(command: string): ShellLine {
  if (command.length > maxCommandChars) return { fragments: [], commands: [], isDoubtful: true }
  return { fragments: shellFragments(command), ...shellCommands(command) }
}

/** A text of several lines is more likely what a tool writes than what it runs. */
function otherLinesOf(texts: readonly string[]): ShellLine[] {
  const lines = texts.map((text) => text.trim()).filter((text) => text.length <= maxOtherChars && !text.includes('\n'))
  return lines.slice(0, maxOthers).map((line) => ({ ...lineOf(line), isDoubtful: false }))
}
const [maxOthers, maxOtherChars] = [200, 2_000]

interface ShellLine extends ShellCommands {
  fragments: readonly string[]
}

function forbidsLine(pattern: string, { fragments, commands, isDoubtful }: ShellLine): boolean {
  if (isDoubtful) return true
  // Programs go by their plain name, also in a rule (`./deploy.sh:*`).
  return [pattern, pattern.replace(/^[^\s:]*\/(?=[^\s:*/])/, '')].some(
    (one) =>
      fragments.some((part) => matchesText(one, part)) ||
      commands.some((command) => mayMatch(one, command, (text) => matchesText(one, text))),
  )
}

/** `cd src && npm test` is allowed when one rule allows its first part and another one the second. */
function allowedTogether(rules: readonly ToolRule[], place: JudgedPlace, call: TakenApart): string | null {
  const { commands, urls } = call.inputs
  const [command] = commands
  if (command === undefined || commands.length > 1 || urls.length + call.paths.length > 0) return null
  const parts = call.parts(command)
  if (!parts || parts.length < 2) return null
  const used = new Set<string>()
  for (const part of new Set(parts)) {
    const one = { ...call, inputs: { ...call.inputs, commands: [part] } }
    const rule = rules.find((candidate) => matches(readRule(candidate), place, one, 'allow'))
    if (!rule) return null
    used.add(ruleText(rule))
  }
  return [...used].join(', ')
}

/** `npm run:*` is `npm run` alone or with arguments; `*` elsewhere stands for any characters. */
function matchesText(pattern: string, text: string): boolean {
  const trimmed = text.trim()
  if (!pattern.endsWith(':*')) return glob(pattern, trimmed)
  const prefix = pattern.slice(0, -2).trimEnd()
  return glob(prefix, trimmed) || glob(`${prefix} *`, trimmed)
}
