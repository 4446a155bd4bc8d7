import type { AgentWarning } from '../../../../../shared/api/agents.ts'
import { readRule, ruleText } from '../../../../../shared/permissions/rule.ts'
import { type HarnessName, harnesses, harnessFactsOf } from '../../../../../shared/runs/harnesses.ts'
import type { ToolRule } from '../../../../../shared/runs/spec.ts'
import { namesKnownTool, permissionLists, probableTool } from '../../../agents/permission-rules.ts'
import type { AgentRow } from '../../../agents/store.ts'

// Findings of the agent doctor about rules that do not do what they seem to say.

interface RuleFacts {
  agent: Pick<AgentRow, 'tools' | 'protocol' | 'fallbackHarness'>
  harness: HarnessName
}

type ListName = (typeof permissionLists)[number]

/** Returns a warning for each rule, up to a bound: whoever mends these sees the others. */
export function ruleWarnings({ agent, harness }: RuleFacts): AgentWarning[] {
  const known = toolsOf({ agent, harness })
  const { label } = harnessFactsOf({ harness, protocol: agent.protocol })
  const found = permissionLists.flatMap((list) =>
    agent.tools[list].flatMap((rule) => {
      const warning = unreadable(list, rule) ?? unknownTool(list, rule, { known, label })
      return warning === null ? [] : [warning]
    }),
  )
  return found.slice(0, mostWarnings)
}
const mostWarnings = 50

/** Returns whether a rule of these lists forbids or asks about anything that the agent's harness does. */
export function forbidsSomething({ agent, harness }: RuleFacts): boolean {
  const known = toolsOf({ agent, harness })
  const { deny, ask } = agent.tools
  return [...deny, ...ask].some((rule) => readRule(rule).problem !== null || namesKnownTool(readRule(rule), known))
}

/** The tools of the harness that its runs use, and of the one that they fall back on. */
function toolsOf({ agent, harness }: RuleFacts): readonly string[] {
  const { tools } = harnessFactsOf({ harness, protocol: agent.protocol })
  return agent.fallbackHarness === null ? tools : [...tools, ...harnesses[agent.fallbackHarness].tools]
}

const effectOf: Readonly<Record<ListName, string>> = {
  deny: 'it denies every call that it may be about',
  ask: 'a person is asked about every call that it may be about',
  allow: 'it allows nothing',
}

function unreadable(list: ListName, rule: ToolRule): AgentWarning | null {
  const { problem } = readRule(rule)
  if (problem === null) return null
  const message = `The rule ${ruleText(rule)} of its ${list} list cannot be read, so ${effectOf[list]}. ${problem}`
  return { code: 'rule_unreadable', severity: 'error', message, param: `permissions.tools.${list}` }
}

function unknownTool(
  list: ListName,
  rule: ToolRule,
  { known, label }: { known: readonly string[]; label: string },
): AgentWarning | null {
  const { tool } = readRule(rule)
  if (namesKnownTool({ tool }, known)) return null
  const meant = probableTool(tool, known)
  const hint = meant === null ? '' : ` Is ${meant} meant?`
  const message = `The rule ${ruleText(rule)} of its ${list} list names ${tool}, and svc knows no such tool of ${label}.${hint}`
  return { code: 'rule_names_no_tool', severity: 'warning', message, param: `permissions.tools.${list}` }
}
