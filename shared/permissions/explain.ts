import type { ToolPermissions, ToolRule } from '../runs/spec.ts'
import { decide, ownSvcRule, type Decision, type JudgedCall } from './decide.ts'
import type { JudgedPlace } from './patterns/path-rules.ts'
import { readRule, ruleText } from './rule.ts'
import { shellCommands } from './shell/commands.ts'
import { unknown } from './shell/command-builder.ts'
import { shellParts, unclearAt } from './shell/parts.ts'
import { steersWhatRuns } from './shell/steering.ts'

/** The answer that a run would give to a call, and why. */
export interface Explanation {
  answer: Decision['decision']
  /** `own_svc`: the call is one of the run's own `svc`; `doubt`: it cannot be judged, or reaches files of svc itself. */
  by: 'rule' | 'mode' | 'own_svc' | 'doubt'
  /** The list whose rule decided. */
  list: 'allow' | 'ask' | 'deny' | null
  rule: string | null
  mode: ToolPermissions['defaultMode']
  /** A sentence for people. */
  reason: string
}

/** Decides like `decide`, and says why. It never changes what is decided. */
export function explain(permissions: ToolPermissions, place: JudgedPlace, call: JudgedCall): Explanation {
  const decision = decide(permissions, place, call)
  const by = causeOf(decision)
  const { decision: answer, rule } = decision
  const list = by === 'rule' ? answer : null
  const base = { answer, by, list, rule: by === 'own_svc' ? null : rule, mode: permissions.defaultMode }
  return { ...base, reason: reasonOf(decision, by, { permissions, place, call }) }
}

function causeOf({ rule, reason }: Decision): Explanation['by'] {
  if (reason !== undefined) return 'doubt'
  if (rule === null) return 'mode'
  // A rule of this text names a tool `svc`, and such a call is none of a shell.
  return rule === ownSvcRule ? 'own_svc' : 'rule'
}

interface Judged {
  permissions: ToolPermissions
  place: JudgedPlace
  call: JudgedCall
}

function reasonOf(decision: Decision, by: Explanation['by'], judged: Judged): string {
  const { call, permissions } = judged
  if (by === 'doubt') return `It is denied whatever the rules say: ${decision.reason}.`
  if (by === 'own_svc') return "It is a plain call of the run's own svc."
  if (by === 'rule') {
    if (decision.decision === 'allow') return `The rule ${decision.rule} of the allow list holds for it.`
    const problem = problemOf(permissions[decision.decision], decision.rule)
    if (problem !== null)
      return `The rule ${decision.rule} of the ${decision.decision} list cannot be read, so it holds for more than it may mean. ${problem}`
    const doubt = call.inputs.commands.map(doubtOf).find((text) => text !== null)
    const named = `The rule ${decision.rule} of the ${decision.decision} list holds for it.`
    return doubt === undefined ? named : `${named} ${doubt}`
  }
  const verb = { allow: 'allows', ask: 'asks about', deny: 'denies' }[decision.decision]
  const why = decision.decision === 'allow' ? null : whyNotAllowed(judged)
  return `No rule decides, and the mode ${permissions.defaultMode} ${verb} it.${why === null ? '' : ` ${why}`}`
}

/** Returns what is wrong with the rule of this text; null when it can be read. */
function problemOf(list: readonly ToolRule[], text: string | null): string | null {
  const rule = list.find((each) => ruleText(each) === text)
  return rule === undefined ? null : readRule(rule).problem
}

/** Says why a rule that forbids may hold for more than it names. */
function doubtOf(command: string): string | null {
  const { commands, isDoubtful } = shellCommands(command)
  if (isDoubtful) return 'The line cannot be read for certain, so it counts as whatever a rule forbids.'
  const word = commands.find(({ program }) => program.shape.includes(unknown))?.program.text
  return word === undefined ? null : `Only the shell knows which program ${quoted(word)} is.`
}

/** The word or the part of a shell line for which no allow rule can speak; null for anything else than a line. */
function whyNotAllowed({ permissions, place, call }: Judged): string | null {
  const [command] = call.inputs.commands
  if (command === undefined || call.inputs.commands.length > 1) return null
  const at = unclearAt(command)
  if (at !== null) {
    if (at === command.length) return 'A quote in the line is not closed, so no allow rule with a pattern holds for it.'
    const word = /^[^\s\0]+/.exec(command.slice(at))?.[0]
    const what = word === undefined ? `the character ${codeOf(command.charAt(at))}` : quoted(word)
    return `What the shell makes of ${what} cannot be said for certain, so no allow rule with a pattern holds for the line.`
  }
  const allowList: ToolPermissions = { ...permissions, ask: [], deny: [], defaultMode: 'strict' }
  const isUnnamed = (part: string) =>
    decide(allowList, { ...place, svcProgram: null }, { ...call, inputs: { ...call.inputs, commands: [part] } })
      .decision !== 'allow'
  const parts = shellParts(command)
  if (parts !== null && steersWhatRuns(parts))
    return 'A command in the line changes what the shell runs, so no allow rule with a pattern holds for the line.'
  const part = parts?.find(isUnnamed)
  return part === undefined ? null : `No allow rule names ${quoted(part)}.`
}

const quoted = (text: string): string => `\`${text.length > 100 ? `${text.slice(0, 100)}...` : text}\``
const codeOf = (char: string): string => `U+${char.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`
