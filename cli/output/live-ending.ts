import { fieldAt, listAt, textAt } from '../replies/fields.ts'
import { dollarsText } from './cell.ts'
import type { Tone } from './colours.ts'
import { oneLine } from './terminal-text.ts'
import { shortDuration } from './times.ts'

// The first and the last line about a run that is followed.

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
    ...(cost === null ? [] : [dollarsText(Number(cost))]),
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
