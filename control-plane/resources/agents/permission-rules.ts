import type { PermissionList, RuleAdditions, RuleRemovals } from '../../../shared/api/agent-config.ts'
import { glob } from '../../../shared/permissions/patterns/glob.ts'
import { readRule, ruleText } from '../../../shared/permissions/rule.ts'
import type { ToolRule } from '../../../shared/runs/spec.ts'
import { nearest } from '../../../shared/lib/nearest.ts'
import type { AgentRow } from './store.ts'

// Decisions about the lists of permission rules of an agent.

type Lists = AgentRow['tools']

export const permissionLists = ['deny', 'ask', 'allow'] as const satisfies readonly PermissionList[]
export const mostRules = 500

/** A sentence about what is wrong with a change, and the field in which it is. */
export interface RuleProblem {
  param: string
  message: string
}

/** The list with these rules added, each once. */
export function withRules(list: readonly ToolRule[], rules: readonly ToolRule[]): ToolRule[] {
  const known = new Set(list.map(ruleText))
  const isNew = (text: string) => !known.has(text) && known.add(text) !== undefined
  return [...list, ...rules.filter((rule) => isNew(ruleText(rule)))]
}

/** The list without the rules of these texts. */
export function withoutRules(list: readonly ToolRule[], rules: readonly ToolRule[]): ToolRule[] {
  const gone = new Set(rules.map(ruleText))
  return list.filter((rule) => !gone.has(ruleText(rule)))
}

/** Says which rule is to be taken away and is not there: somebody would believe that it no longer holds. */
export function missingRule(lists: Lists, removals: RuleRemovals): RuleProblem | null {
  for (const list of permissionLists) {
    const known = new Set(lists[list].map(ruleText))
    const missing = removals[list]?.map(ruleText).find((text) => !known.has(text))
    if (missing !== undefined)
      return { param: `removeRules.${list}`, message: `The ${list} list has no rule \`${missing}\`. ${inList(known)}` }
  }
  return null
}

function inList(rules: ReadonlySet<string>): string {
  if (rules.size === 0) return 'It is empty.'
  const shown = [...rules].slice(0, mostShown).map((text) => `\`${text}\``)
  return `It has ${shown.join(', ')}${rules.size > mostShown ? ` and ${rules.size - mostShown} more` : ''}.`
}
const mostShown = 20

/** The lists with rules taken away and then added; null instead of additions empties a list. */
export function changedLists(
  lists: Lists,
  { add, remove }: { add: RuleAdditions | undefined; remove: RuleRemovals | undefined },
): Lists {
  const changed = (list: PermissionList): ToolRule[] => {
    if (add?.[list] === null) return []
    return withRules(withoutRules(lists[list], remove?.[list] ?? []), add?.[list] ?? [])
  }
  return { allow: changed('allow'), ask: changed('ask'), deny: changed('deny') }
}

/**
 * Says why the lists may not be stored. A rule that was stored before, by a release that read none, may stay: whoever changes
 * something else must not be kept from it.
 */
export function problemOfLists(before: Lists, after: Lists): RuleProblem | null {
  for (const list of permissionLists) {
    const param = `config.permissions.tools.${list}`
    const old = new Set(before[list].map(ruleText))
    const unreadable = after[list].find((rule) => !old.has(ruleText(rule)) && readRule(rule).problem !== null)
    if (unreadable !== undefined)
      return { param, message: `The rule \`${ruleText(unreadable)}\` cannot be read. ${readRule(unreadable).problem}` }
    if (after[list].length > mostRules && after[list].length > before[list].length)
      return { param, message: `A list has at most ${mostRules} rules.` }
  }
  return null
}

/** Returns whether the rule speaks of a tool that a harness has: by its name, or as one of an MCP server. */
export function namesKnownTool({ tool }: { tool: string }, known: readonly string[]): boolean {
  const name = tool.toLowerCase()
  // A pattern may mean any tool, also one of a server.
  if (name.includes('*') && (glob(name, 'mcp__') || name.startsWith('*'))) return true
  if (name.startsWith('mcp__')) return true
  return known.some((each) => glob(name, each.toLowerCase()) || glob(each.toLowerCase(), name))
}

/** The tool that was probably meant; null: none is near. */
export const probableTool = (tool: string, known: readonly string[]): string | null =>
  nearest(
    tool,
    known.filter((each) => !each.includes('*')),
  )
