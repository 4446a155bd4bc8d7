import type { AgentRef, ApprovalId, PersonRef } from '../../../shared/lib/ids.ts'
import type { ErrorCode } from '../../../shared/api/errors.ts'
import type { ApprovalTrigger, GatedKind } from '../../../shared/api/approval-words.ts'
import { inputsOf, mainText } from '../../../shared/permissions/call-inputs.ts'
import { readRule } from '../../../shared/permissions/rule.ts'
import { quotedIn, shellParts } from '../../../shared/permissions/shell/parts.ts'
import { steersWhatRuns } from '../../../shared/permissions/shell/steering.ts'
import { mainFields } from '../../../shared/runs/call-fields.ts'
import type { ToolRule } from '../../../shared/runs/spec.ts'
import { hasRole, type Caller } from '../../http/callers.ts'
import type { ApprovalRow } from './store.ts'

// Decisions about approvals.

export const kindOfTrigger: Readonly<Record<ApprovalTrigger, GatedKind>> = {
  tool_permission: 'tool_call',
  budget_breach: 'budget',
  connection_action: 'connection_action',
  learning_review: 'learning_review',
  instruction_publish: 'instruction_publish',
  platform_change: 'platform_change',
}

/** Triggers whose run stops and waits; with the others the run goes on. */
export const holdingTriggers = ['tool_permission', 'connection_action', 'instruction_publish'] as const
export const holdsItsRun = (trigger: ApprovalTrigger): boolean => holdingTriggers.some((one) => one === trigger)

/** The key of the wake that resolving the approval asks for. */
export const approvalWakeKey = (id: ApprovalId): string => `${wakePrefix}${id}`
/** The approval whose resolution asked for the wake with this key. */
export const approvalOfWake = (key: string | null): string | null =>
  key?.startsWith(wakePrefix) ? key.slice(wakePrefix.length) : null
const wakePrefix = 'approval:'

/** Triggers whose approvals are rejected when their run ends for another reason than asking. */
export const rejectedWithRun = ['budget_breach', 'connection_action'] as const

/** The agent that asks; null: the platform does. Of a spent budget the agent only says who sees it. */
export const askerOf = ({ agentRef, trigger }: Pick<ApprovalRow, 'agentRef' | 'trigger'>): AgentRef | null =>
  trigger === 'budget_breach' ? null : agentRef

const askingReasons = ['approval_requested', 'question_asked']
/** Returns whether the run stopped to ask a person. */
export const isAsking = (exitReason: string | null): boolean =>
  exitReason !== null && askingReasons.includes(exitReason)

const hour = 3_600_000
/** A `tool_permission` expires this long after its run ended. */
export const toolPermissionMs = 24 * hour
/** A `platform_change` expires this long after it was raised. */
export const platformChangeMs = 7 * 24 * hour

export const expiresAt = (approval: Pick<ApprovalRow, 'trigger' | 'createdAt'>): number | null =>
  approval.trigger === 'platform_change' ? approval.createdAt + platformChangeMs : null

/** The reason why this person may not resolve the approval; null: they may. Admins must reassign it first. */
export function resolveRefusal(
  approval: Pick<ApprovalRow, 'status' | 'assignedType' | 'assignedRef' | 'trigger' | 'createdAt'>,
  caller: { personRef: PersonRef },
  now: number,
): ErrorCode | null {
  if (approval.status === 'resolved') return 'approval_resolved'
  if (approval.assignedType === 'system') return 'user_cannot_resolve_system_approval'
  const until = expiresAt(approval)
  if (until !== null && now >= until) return 'approval_resolved'
  if (approval.assignedRef === null || approval.assignedRef === caller.personRef) return null
  return 'approval_assignee_mismatch'
}

/** The reason why this caller may not name another approver; null: they may. */
export function assignRefusalOf(
  approval: Pick<ApprovalRow, 'status' | 'assignedType'>,
  caller: Caller,
): ErrorCode | null {
  if (!hasRole(caller, 'admin')) return 'not_authorized'
  if (approval.status === 'resolved') return 'approval_resolved'
  return approval.assignedType === 'system' ? 'approval_not_user_assignable' : null
}

/** Tools that have such a field. No person should generally allow a call of theirs without it, whatever its input. */
const patternTools =
  /^(?:bash|shell|local_shell|exec(?:_command)?|terminal|(?:multi|notebook)?edit|write|apply_patch|patch|read|ls|list|glob|grep|webfetch|websearch|skill|task|agent)$/i
const commandFields = ['command', 'cmd']
const longestPattern = 500

/**
 * The narrowest rules that let the same call pass from now on; null when no rules match exactly that call: a pattern
 * reads `*` as anything, a masked value is unknown, and the parts of a shell command are judged one by one.
 */
export function allowRulesOf(call: { name: string; toolArgs?: unknown }): ToolRule[] | null {
  const args = typeof call.toolArgs === 'object' && call.toolArgs !== null ? call.toolArgs : {}
  const field = mainFields.find((name) => typeof (args as Record<string, unknown>)[name] === 'string')
  if (field === undefined) {
    // No pattern covers these arguments, so the rule is about the tool: not where it would open every command, path or address.
    const isOdd = mainFields.some((name) => Object.hasOwn(args, name))
    const { commands, paths, urls } = inputsOf({ name: call.name, input: args })
    const reachesOut = commands.length + paths.filter(({ isDefault }) => !isDefault).length + urls.length > 0
    const isOpen = isOdd || reachesOut || call.name.includes('*') || patternTools.test(call.name)
    return isOpen || readRule(call.name).problem !== null ? null : [call.name]
  }
  const text = mainText(args, field)!.trim()
  if (text === '' || /^domain:|[*\n]|\[(?:redacted|masked)\b/.test(text)) return null
  const parts = commandFields.includes(field) ? simpleParts(text) : [text]
  if (parts === null || parts.some((part) => part.length > longestPattern || part.endsWith(':'))) return null
  const rules = parts.map((pattern) => ({ tool: call.name, pattern }))
  return rules.every((rule) => readRule(rule).problem === null) ? rules : null
}

/**
 * The commands of `a "b c" && d; e`; null when the line has more than plain words and texts in quotes, which a rule holds as they are
 * written.
 */
function simpleParts(command: string): string[] | null {
  const quotes = quotedIn(command)
  // Everything in quotes stands for itself, but for what `shellParts` refuses, and a backslash between double ones.
  if (quotes.some(({ text }) => text.includes('\\'))) return null
  const bare = quotes
    .toReversed()
    .reduce((line, { from, to }) => `${line.slice(0, from)}q${line.slice(to + 1)}`, command)
  if (/[|<>`$(){}\\'"#!~?[\]]/.test(bare) || /(^|[^&])&([^&]|$)/.test(bare)) return null
  const parts = bare === command ? command.split(/&&|;/).map((part) => part.trim()) : shellParts(command)
  if (parts === null || steersWhatRuns(parts)) return null
  // A variable set before a command is more than plain words.
  return parts.some((part) => part === '' || /^\w+=/.test(part)) ? null : [...new Set(parts)]
}
