import { exitStatus } from '../errors/exit-codes.ts'
import { fieldAt, listAt, textAt } from '../replies/fields.ts'
import type { Tone } from './colours.ts'
import { oneLine } from './terminal-text.ts'
import { shortDuration } from './times.ts'

/**
 * Returns what a person should know of a run besides its answer: why it failed, what it waits for. Null when the answer says it
 * all.
 */
export function aboutEnding(run: unknown): string | null {
  const status = textAt(run, 'status')
  const waitsFor = textAt(run, 'waitingOn', 'label')
  if (waitsFor !== null) return `the run ended to wait for a person: ${waitsFor}`
  if (status === 'failed' || status === 'cancelled')
    return `${howItEnded(status)}: ${textAt(run, 'errorMessage') ?? textAt(run, 'exitReason') ?? 'not said why'}`
  if (status === 'queued' || status === 'running') {
    const gate = textAt(run, 'gateDescription')
    return `the run is ${status}${gate === null ? '' : `: ${gate}`}`
  }
  if (fieldAt(run, 'transcriptRead', 'isError') === true) return 'the agent called this an error.'
  return textAt(run, 'errorMessage')
}

/** How a run with this status ended, as words of a sentence. */
export const howItEnded = (status: string): string =>
  status === 'cancelled' ? 'the run was cancelled' : `the run ${status}`

/** Names a run in one line: its id, its agent, its harness and where it is. */
export function headOf(run: unknown): string {
  const isInCloud = textAt(run, 'environment', 'type') === 'cloud'
  const place = isInCloud ? 'in the cloud' : textAt(run, 'environment', 'deviceName')
  const parts = [textAt(run, 'id'), textAt(run, 'agent', 'handle'), textAt(run, 'harness', 'id'), place]
  return parts.filter((part) => part !== null && part !== '').join(' · ')
}

/** The last line about a run that was watched: how it ended, its time, its cost, what it changed. `changes`: null where there are none. */
export function endingLine(run: unknown, changes: unknown): [line: string, tone: Tone] {
  const status = textAt(run, 'status') ?? 'ended'
  const label = textAt(run, 'waitingOn', 'label')
  const waits = label === null ? null : oneLine(label)
  const [mark, tone]: [string, Tone] =
    waits !== null
      ? ['?', 'waits']
      : status === 'succeeded'
        ? ['✓', 'good']
        : status === 'cancelled'
          ? ['■', 'dim']
          : ['✗', 'bad']
  const [began, ended] = [textAt(run, 'startedAt'), textAt(run, 'completedAt')]
  const took = began === null || ended === null ? '' : ` in ${shortDuration(Date.parse(ended) - Date.parse(began))}`
  const cost = textAt(run, 'costUsd')
  const files = listAt(changes, 'files').length
  const parts = [
    waits === null ? `${status}${took}` : `It waits for a person: ${waits}`,
    ...(cost === null ? [] : [`$${Number(cost).toFixed(Number(cost) < 0.1 ? 4 : 2)}`]),
    ...(files === 0
      ? []
      : [
          `${files} ${files === 1 ? 'file' : 'files'} changed (+${String(fieldAt(changes, 'additions'))} -${String(fieldAt(changes, 'deletions'))})`,
        ]),
  ]
  const why =
    status === 'failed' || status === 'cancelled' ? (textAt(run, 'errorMessage') ?? textAt(run, 'exitReason')) : null
  return [`${mark} ${parts.join(' · ')}${why === null ? '' : `: ${why}`}`, tone]
}

/** Returns how the run ended, as an exit status. */
export function exitStatusOf(run: unknown): number {
  switch (textAt(run, 'status')) {
    case 'succeeded':
      return exitStatus('ok')
    case 'cancelled':
      return exitStatus('run_cancelled')
    default:
      return exitStatus('run_failed')
  }
}
