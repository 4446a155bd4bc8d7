import { fieldAt, listAt, textAt } from '../replies/fields.ts'
import type { Tone } from './colours.ts'
import { oneLine } from './terminal-text.ts'
import { shortDuration } from './times.ts'

type Line = readonly [text: string, tone: Tone | null]

/** Says what has changed in a run of a workflow since it was read before, a line for each thing. `before`: null at first. */
export function workflowChanges(before: unknown, now: unknown): Line[] {
  return [...stepChanges(before, now), ...newLog(before, now), ...asked(before, now), ...checks(before, now)]
}

function stepChanges(before: unknown, now: unknown): Line[] {
  const known = new Map(listAt(before, 'steps').map((step) => [ordinalOf(step), step]))
  return listAt(now, 'steps').flatMap((step) => {
    const was = known.get(ordinalOf(step))
    if (textAt(step, 'state') === 'done')
      return was === undefined || textAt(was, 'state') !== 'done' ? [ended(step)] : []
    const begins = was === undefined ? [began(step)] : []
    const approval = textAt(step, 'pendingApproval', 'id')
    if (approval === null || approval === textAt(was, 'pendingApproval', 'id')) return begins
    const prompt = oneLine(textAt(step, 'pendingApproval', 'prompt') ?? '')
    return [
      ...begins,
      [`? ${nameOf(step)} asks: ${prompt}`, 'waits'] as const,
      [`  svc approval approve ${approval}`, 'dim'] as const,
      [`  or: svc approval reject ${approval}`, 'dim'] as const,
    ]
  })
}

function began(step: unknown): Line {
  const run = textAt(step, 'run', 'id')
  return [`● ${nameOf(step)}${run === null ? '' : `   svc run watch ${run}`}`, 'busy']
}

function ended(step: unknown): Line {
  const [from, to] = ['dispatchedAt', 'advancedAt'].map((name) => Date.parse(textAt(step, name) ?? ''))
  const took = Number.isNaN(from! + to!) ? '' : ` ${shortDuration(to! - from!)}`
  const why = textAt(step, 'error', 'message')
  return why === null ? [`✓ ${nameOf(step)}${took}`, 'good'] : [`✗ ${nameOf(step)}${took}: ${oneLine(why)}`, 'bad']
}

const ordinalOf = (step: unknown) => fieldAt(step, 'stepOrdinal')

function nameOf(step: unknown): string {
  const argv = listAt(step, 'gate', 'argv').filter((word) => typeof word === 'string')
  const label = textAt(step, 'label') ?? textAt(step, 'phase') ?? argv.join(' ')
  const parts = [String(ordinalOf(step)), oneLine(label), textAt(step, 'agent', 'handle') ?? '']
  return parts.filter((part) => part !== '').join(' ')
}

/** The log holds the last lines: those behind the last one that was known are new. */
function newLog(before: unknown, now: unknown): Line[] {
  const [old, lines] = [listAt(before, 'log'), listAt(now, 'log')]
  const at = old.length === 0 ? -1 : lines.lastIndexOf(old.at(-1))
  return lines
    .slice(at + 1)
    .flatMap((line) => (typeof line === 'string' ? [[`  ${oneLine(line)}`, 'dim'] as const] : []))
}

function asked(before: unknown, now: unknown): Line[] {
  const id = textAt(now, 'parkedQuestion', 'id')
  if (id === null || id === textAt(before, 'parkedQuestion', 'id')) return []
  const options = listAt(now, 'parkedQuestion', 'options').map(
    (option) => `  - ${oneLine(textAt(option, 'label') ?? '')}`,
  )
  return [
    [`? ${oneLine(textAt(now, 'parkedQuestion', 'prompt') ?? '')}`, 'waits'],
    ...options.map((option) => [option, null] as const),
    [`  svc question answer ${id} "..."`, 'dim'],
  ]
}

function checks(before: unknown, now: unknown): Line[] {
  const branch = textAt(now, 'parkedChecks', 'branch')
  if (branch === null || branch === textAt(before, 'parkedChecks', 'branch')) return []
  return [[`… waits for the checks of ${oneLine(branch)}`, 'waits']]
}

/** The last line about a run of a workflow that was watched. */
export function workflowEnding(run: unknown): Line {
  const status = textAt(run, 'status') ?? 'ended'
  const [from, to] = ['startedAt', 'completedAt'].map((name) => Date.parse(textAt(run, name) ?? ''))
  const took = Number.isNaN(from! + to!) ? '' : ` in ${shortDuration(to! - from!)}`
  const said = textAt(run, 'error', 'message') ?? textAt(run, 'summary')
  const line = `${status}${took}${said === null ? '' : `: ${oneLine(said)}`}`
  return status === 'completed' ? [`✓ ${line}`, 'good'] : [`✗ ${line}`, 'bad']
}
