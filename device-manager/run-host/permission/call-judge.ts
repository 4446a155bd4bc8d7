import { askedCallLimits, type AskedCall } from '../../../shared/runs/asked-call.ts'
import type { RunEventBody } from '../../../shared/runs/events.ts'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import type { CallDecision, ToolAsk } from '../../harness/adapter.ts'
import { callDigest } from './call-digest.ts'
import { mainInput } from '../../../shared/permissions/call-inputs.ts'
import { decide, refusal, type Decision } from '../../../shared/permissions/decide.ts'
import type { PathLookup } from '../../../shared/permissions/path-lookup.ts'
import type { JudgedPlace, PathFact } from '../../../shared/permissions/patterns/path-rules.ts'
import { reachOf, type CallReach } from '../../../shared/permissions/reach.ts'
import { maskText, shownArgs } from './shown-args.ts'

export interface CallJudgeOptions {
  spec: Pick<RunSpec, 'agent' | 'permissions' | 'allowCalls'>
  place: JudgedPlace
  redactText(text: string): string
  /** False once the run ends for another reason than that a person is asked: then no call may be made any more. */
  mayAct(): boolean
  /** False where nobody is to be asked, whatever the lists say. */
  mayAsk(): boolean
  /** A person is asked: the run is to end. Called before the harness has its answer. */
  onAsked(call: AskedCall): void
}
export interface CallAnswer {
  event: RunEventBody
  decision: CallDecision
}

/**
 * Answers each tool call of one run by the agent's lists, by what a person allowed before, and by asking. A person cannot
 * be asked while the run works: the call is refused, the run ends `approval_requested`, and the run that the answer wakes
 * finds the call in its `allowCalls`.
 *
 *     open   -- a call must be asked -->  asking   (each further call is refused; those that must be asked are asked too)
 */
export class CallJudge {
  readonly #options: CallJudgeOptions
  /** Approvals that were not used yet: each is good for one call. */
  readonly #approved: RunSpec['allowCalls']
  readonly #asked = new Map<string, AskedCall>()
  #allowed = 0
  #refused = 0
  /** The rules that denied the first calls, for the ending of a run that was allowed nothing. */
  readonly #refusedBy = new Set<string>()

  constructor(options: CallJudgeOptions) {
    this.#options = options
    this.#approved = [...options.spec.allowCalls]
  }

  /** Looks at the file system only where something depends on it. */
  lookUp(ask: ToolAsk, lookup: PathLookup): Promise<CallReach> {
    const { spec, place } = this.#options
    return reachOf(ask, { permissions: spec.permissions, place, lookup })
  }

  answer(ask: ToolAsk, reach: CallReach): CallAnswer {
    const inputDigest = callDigest(ask.name, ask.input)
    const decision = this.#decide(ask, inputDigest, reach)
    const answer = this.#answer(ask, { inputDigest, decision, reach })
    if (answer.decision.behavior === 'allow') this.#allowed++
    else this.#refuse(decision)
    return answer
  }

  /**
   * Says that an agent was let do nothing of what it tried, and what denied it first; null where it was let do something, or
   * tried nothing. However such a run ended for its harness, it is no success. `made`: how many calls the harness told of; more
   * than were refused were made without being asked about.
   */
  nothingAllowed(made: number): string | null {
    if (this.#allowed > 0 || this.#refused === 0 || made > this.#refused) return null
    const calls = this.#refused === 1 ? 'The one tool call' : `All ${this.#refused} tool calls`
    const verb = this.#refused === 1 ? 'was' : 'were'
    const by = [...this.#refusedBy].join('; ')
    return `${calls} that the agent tried ${verb} denied by its permissions: ${by}. \`svc agent permissions check\` tells why.`
  }

  #refuse({ rule, reason }: Decision): void {
    this.#refused++
    if (this.#refusedBy.size >= namedRules) return
    const byRule = rule === null ? `the mode ${this.#options.spec.permissions.defaultMode}` : `the rule ${rule}`
    this.#refusedBy.add(reason ?? byRule)
  }

  #answer(ask: ToolAsk, of: { inputDigest: string; decision: Decision; reach: CallReach }): CallAnswer {
    const { decision } = of
    if (decision.decision === 'ask') return this.#ask(ask, of)
    if (decision.decision === 'deny') return refused(ask, decision, { message: refusal(decision, ask) })
    // Nobody wants what a harness does between the end that it was told and its exit.
    const ending = this.#asked.size > 0 ? endingMessage : this.#options.mayAct() ? null : overMessage
    if (ending !== null) return refused(ask, { decision: 'deny', rule: null }, { message: ending, stop: true })
    return { event: permissionEvent(ask, decision), decision: { behavior: 'allow', rule: decision.rule } }
  }

  #decide(ask: ToolAsk, inputDigest: string, reach: CallReach): Decision {
    const { permissions } = this.#options.spec
    const at = this.#approved.findIndex((each) => each.name === ask.name && each.inputDigest === inputDigest)
    const approved = this.#approved[at]
    const call = { name: ask.name, input: ask.input, ...reach, ...(approved && { approvalId: approved.approvalId }) }
    const decision = decide(permissions, this.#options.place, call)
    // A call that is refused because the run ends keeps its approval in vain: the next run is not given it again.
    if (approved && decision.decision === 'allow' && this.#asked.size === 0) this.#approved.splice(at, 1)
    return decision
  }

  #ask(ask: ToolAsk, of: { inputDigest: string; decision: Decision; reach: CallReach }): CallAnswer {
    const { inputDigest, decision } = of
    // Nobody could be shown such a name; it is refused like any call that is not allowed.
    if (ask.name.length > askedCallLimits.nameChars) return refused(ask, decision, { message: refusal(decision, ask) })
    const known = this.#asked.get(inputDigest)
    const isFull = this.#asked.size >= askedCallLimits.calls
    if (!this.#options.mayAct() || !this.#options.mayAsk() || (isFull && !known))
      return refused(ask, decision, { message: unaskedMessage, stop: true })
    const call = known ?? askedCallOf(ask, { ...of, ...this.#options })
    this.#asked.set(inputDigest, call)
    const { toolCallId: _id, name: _name, ...details } = call
    const answer = refused(ask, decision, { message: askedMessage(call), stop: true }, details)
    if (!known) this.#options.onAsked(call)
    return answer
  }
}

/** The number of rules that a message names of those that denied calls. */
const namedRules = 3

const endingMessage =
  'This run ends now, since a person is asked about another call. Make no further calls; this one can be made again when the work goes on.'
const overMessage = 'This run ends now. Make no further calls.'
const unaskedMessage = "This call needs a person's approval, and the run ends now. Make no further calls."
const askedMessage = ({ name }: AskedCall) =>
  `This call of ${name} needs a person's approval, who is asked now. This run ends here: make no further calls. When the person has answered, the work goes on in this session, and you are told what was decided.`

function refused(
  ask: ToolAsk,
  decision: Decision,
  answer: { message: string; stop?: boolean },
  details?: Omit<AskedCall, 'toolCallId' | 'name'>,
): CallAnswer {
  return { event: permissionEvent(ask, decision, details), decision: { behavior: 'deny', ...answer } }
}

function permissionEvent(
  ask: ToolAsk,
  { decision, rule }: Decision,
  details?: Omit<AskedCall, 'toolCallId' | 'name'>,
): RunEventBody {
  return {
    kind: 'permission',
    data: {
      ...(ask.toolCallId !== null && { toolCallId: ask.toolCallId }),
      name: ask.name,
      decision,
      ...(rule !== null && { rule }),
      ...(details && { ask: details }),
    },
  }
}

function askedCallOf(
  { toolCallId, name, input }: ToolAsk,
  of: Pick<CallJudgeOptions, 'spec' | 'redactText'> & { inputDigest: string; decision: Decision; reach: CallReach },
): AskedCall {
  const shown = (text: string) => maskText(of.redactText(text))
  const { args, isCut } = shownArgs(input, of.redactText)
  const main = mainInput(input)
  const field = main !== null && of.reach.inputs.commands.includes(main) ? 'command' : ''
  const what = (main === null ? JSON.stringify(args) : maskText(of.redactText(main), field)).trim()
  const by = of.decision.rule === null ? '' : ` (rule: ${shown(of.decision.rule)})`
  const cut = isCut ? ' Not all of its input is shown; the approval is for the whole of it.' : ''
  const head = `${of.spec.agent.handle} asks to use ${shown(name)}${by}.${cut}${leadsTo(of.reach.paths, shown)}`
  return {
    toolCallId: toolCallId?.slice(0, 200) ?? null,
    name,
    inputDigest: of.inputDigest,
    safeSummary: cutTo(oneLine(`${shown(name)}: ${what}`), askedCallLimits.summaryChars),
    toolArgs: args,
    prompt: cutTo(printable(`${head}\n\n${what}`), askedCallLimits.promptChars),
  }
}

const leadsToChars = { all: 1_000, path: 200 } as const

/**
 * A link can name one file and mean another: whoever is asked is told what would be opened. A long path is shown by its end, and
 * what there is no room for is counted: an agent must not hide one link behind others.
 */
function leadsTo(paths: readonly PathFact[], shown: (text: string) => string): string {
  const end = (text: string) => lastOf(shown(text).replaceAll(/\s/g, ' '), leadsToChars.path)
  const sentences = paths
    .filter(({ forms }) => forms.length > 1)
    .map(({ text, forms }) => ` ${end(text)} leads to ${forms.slice(1).map(end).join(' or ')}.`)
  let told = ''
  let count = 0
  for (const sentence of sentences) {
    if (told.length + sentence.length > leadsToChars.all) break
    told += sentence
    count++
  }
  const left = sentences.length - count
  return left === 0 ? told : `${told} ${left} more of its paths lead elsewhere.`
}

function lastOf(text: string, chars: number): string {
  if (text.length <= chars) return text
  const from = text.length - chars + 3
  return `...${text.slice(/[\udc00-\udfff]/.test(text.charAt(from)) ? from + 1 : from)}`
}

const oneLine = (text: string): string => printable(text).replaceAll(/\s+/g, ' ')
/** Characters that move a terminal's cursor or turn the direction of writing would show another call than the one that is asked. */
const printable = (text: string): string =>
  text.replaceAll(/[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu, (char) =>
    char === '\n' || char === '\t' ? char : '\u{fffd}',
  )
function cutTo(text: string, chars: number): string {
  if (text.length <= chars) return text
  const end = /[\ud800-\udbff]/.test(text.charAt(chars - 4)) ? chars - 4 : chars - 3
  return `${text.slice(0, end)}...`
}
