import { exitStatus } from '../errors/exit-codes.ts'
import { fieldAt, textAt } from '../replies/fields.ts'

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
