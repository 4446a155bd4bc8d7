import { posix } from 'node:path'
import type { ToolPermissions, ToolRule } from '../../shared/runs/spec.ts'
import { shellFragments, shellParts } from './shell-parts.ts'

export interface ToolCall {
  name: string
  input: unknown
}
/** Against what a pattern of a path is resolved. */
export interface GatePlace {
  cwd: string
  homeDir: string
}
export interface Decision {
  decision: 'allow' | 'deny' | 'ask'
  /** The rule that decided, as the agent's config has it; null when it was the default mode. */
  rule: string | null
}

/**
 * Whether a tool call may be made: deny list, what a person allowed (`approvalId`, for this very call), ask list, allow
 * list, then the default mode (strict denies, ask asks, full allows). A rule that allows goes before one that asks only
 * when it is the narrower of the two: it is what a person wrote, or approved for always, about the wider one. Lists that
 * forbid match generously, the list that allows matches narrowly: a shell command is allowed by a pattern only when each
 * of its parts is, and one that cannot be taken apart for certain never is.
 */
export function decide(
  permissions: ToolPermissions,
  place: GatePlace,
  call: ToolCall & { approvalId?: string },
): Decision {
  const found = (rules: readonly ToolRule[], mode: 'forbid' | 'allow') =>
    rules.filter((rule) => matches(parseRule(rule), place, call, mode))
  const [denied] = found(permissions.deny, 'forbid')
  if (denied) return { decision: 'deny', rule: textOf(denied) }
  if (call.approvalId !== undefined) return { decision: 'allow', rule: `approval:${call.approvalId}` }
  const asking = found(permissions.ask, 'forbid')
  const isNarrower = (rule: ToolRule) => asking.every((wide) => narrowness(rule) > narrowness(wide))
  const [allowed] = found(permissions.allow, 'allow').filter(isNarrower)
  if (allowed) return { decision: 'allow', rule: textOf(allowed) }
  const together = allowedTogether(permissions.allow.filter(isNarrower), place, call)
  if (together !== null) return { decision: 'allow', rule: together }
  if (asking[0]) return { decision: 'ask', rule: textOf(asking[0]) }
  const byMode = { strict: 'deny', ask: 'ask', full: 'allow' } as const
  return { decision: byMode[permissions.defaultMode], rule: null }
}

/** How much a rule leaves open: a tool by its name before several, an input before any, one text before a pattern. */
function narrowness(rule: ToolRule): number {
  const { tool, pattern } = parseRule(rule)
  const ofTool = tool.includes('*') ? 0 : 1
  return ofTool * 3 + (pattern === null ? 0 : pattern.includes('*') ? 1 : 2)
}

/** What the harness is told of a call that may not be made. */
export function refusal(decision: Decision, call: ToolCall): string {
  const what = mainInput(call.input)
  const named = what === null ? call.name : `${call.name}(${what.length > 200 ? `${what.slice(0, 200)}...` : what})`
  const why =
    decision.rule === null || decision.decision === 'ask' ? 'no rule allows it' : `the rule ${decision.rule} forbids it`
  return `${named} was denied: ${why}. Go on without it.`
}

/** The part of a tool's input by which a person knows the call: its command, path, address; null when there is none. */
export function mainInput(input: unknown): string | null {
  return primaryInput(input)?.text ?? null
}

interface ParsedRule {
  tool: string
  /** null: the tool whatever its input. */
  pattern: string | null
}

function parseRule(rule: ToolRule): ParsedRule {
  if (typeof rule !== 'string') return { tool: rule.tool, pattern: anything(rule.pattern) }
  const open = rule.indexOf('(')
  if (open <= 0 || !rule.endsWith(')')) return { tool: rule, pattern: null }
  return { tool: rule.slice(0, open), pattern: anything(rule.slice(open + 1, -1)) }
}
function anything(pattern: string): string | null {
  return pattern === '' || pattern === '*' || pattern === '**' || pattern === ':*' ? null : pattern
}
function textOf(rule: ToolRule): string {
  return typeof rule === 'string' ? rule : `${rule.tool}(${rule.pattern})`
}

function matches(rule: ParsedRule, place: GatePlace, call: ToolCall, mode: 'forbid' | 'allow'): boolean {
  if (!glob(rule.tool.toLowerCase(), call.name.toLowerCase())) return false
  if (rule.pattern === null) return true
  const { pattern } = rule
  const input = primaryInput(call.input)
  // A pattern says nothing about an input that it cannot be held against.
  if (!input) return false
  if (input.kind === 'path') return matchesPath(pattern, input.text, place)
  if (input.kind === 'url') return matchesUrl(pattern, input.text)
  if (input.kind === 'text') return matchesText(pattern, input.text)
  if (mode === 'forbid') return shellFragments(input.text).some((part) => matchesText(pattern, part))
  return shellParts(input.text)?.every((part) => matchesText(pattern, part)) ?? false
}

/** `cd src && npm test` is allowed when one rule allows its first part and another one the second. */
function allowedTogether(rules: readonly ToolRule[], place: GatePlace, call: ToolCall): string | null {
  const input = primaryInput(call.input)
  const parts = input?.kind === 'command' ? shellParts(input.text) : null
  if (!parts || parts.length < 2) return null
  const used = new Set<string>()
  for (const part of parts) {
    const one = { name: call.name, input: { command: part } }
    const rule = rules.find((candidate) => matches(parseRule(candidate), place, one, 'allow'))
    if (!rule) return null
    used.add(textOf(rule))
  }
  return [...used].join(', ')
}

interface PrimaryInput {
  kind: 'command' | 'path' | 'url' | 'text'
  text: string
}
const primaryFields = [
  ['command', 'command'],
  ['cmd', 'command'],
  ['file_path', 'path'],
  ['filePath', 'path'],
  ['notebook_path', 'path'],
  ['path', 'path'],
  ['url', 'url'],
  ['query', 'text'],
  ['pattern', 'text'],
  ['skill', 'text'],
  ['subagent_type', 'text'],
] as const

/** The part of a tool's input that patterns are about. */
function primaryInput(input: unknown): PrimaryInput | null {
  if (typeof input !== 'object' || input === null) return null
  const fields = input as Record<string, unknown>
  for (const [name, kind] of primaryFields) {
    const value = fields[name]
    if (typeof value === 'string') return { kind, text: value }
    if (kind === 'command' && Array.isArray(value)) return { kind, text: commandOf(value.map(String)) }
  }
  return null
}

/** An argv array: what a shell is told to run, else the words. */
function commandOf(argv: readonly string[]): string {
  const [shell, flag, script] = argv
  if (argv.length === 3 && /(^|\/)(ba|z|da|k)?sh$/.test(shell ?? '') && /^-l?c$/.test(flag ?? '')) return script ?? ''
  return argv.join(' ')
}

/** `npm run:*` is `npm run` alone or with arguments; `*` elsewhere stands for any characters. */
function matchesText(pattern: string, text: string): boolean {
  const trimmed = text.trim()
  if (!pattern.endsWith(':*')) return glob(pattern, trimmed)
  const prefix = pattern.slice(0, -2)
  return glob(prefix, trimmed) || glob(`${prefix} *`, trimmed)
}

function matchesPath(pattern: string, path: string, place: GatePlace): boolean {
  return glob(absolute(pattern, place), absolute(path, place))
}
function absolute(path: string, place: GatePlace): string {
  if (path === '~' || path.startsWith('~/')) return posix.join(place.homeDir, path.slice(1))
  if (path.startsWith('//')) return posix.normalize(path.slice(1))
  if (path.startsWith('*')) return path
  return posix.resolve(place.cwd, path)
}

function matchesUrl(pattern: string, url: string): boolean {
  if (!pattern.startsWith('domain:')) return glob(pattern, url)
  const domain = pattern.slice('domain:'.length).toLowerCase()
  const host = URL.parse(url)?.hostname.toLowerCase()
  return host !== undefined && (host === domain || host.endsWith(`.${domain}`))
}

/** `*` stands for any characters. In time linear in the text for each star, whatever the pattern. */
export function glob(pattern: string, text: string): boolean {
  let at = 0
  let inPattern = 0
  let star = -1
  let starAt = 0
  while (at < text.length) {
    if (pattern[inPattern] === '*') {
      star = inPattern++
      starAt = at
    } else if (inPattern < pattern.length && pattern[inPattern] === text[at]) {
      inPattern++
      at++
    } else if (star >= 0) {
      inPattern = star + 1
      at = ++starAt
    } else {
      return false
    }
  }
  while (pattern[inPattern] === '*') inPattern++
  return inPattern === pattern.length
}
