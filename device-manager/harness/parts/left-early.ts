import { constants } from 'node:os'
import { stripVTControlCharacters } from 'node:util'
import type { ProcessExit } from '../adapter.ts'

const maxSaidChars = 500

/**
 * Says that a program left before its work was over. What it wrote last on standard error is told where it left by itself; one that was
 * ended from outside wrote that about something else. `when`: what it left in the middle of.
 */
export function leftEarly(
  program: string,
  { exitCode, signal }: Pick<ProcessExit, 'exitCode' | 'signal'>,
  { stderrTail, when }: { stderrTail: string; when: string },
): string {
  const by = signal ?? signalOf(exitCode)
  if (by !== null) return `${program} was killed by ${by} ${when}.`
  const said = lastWords(stderrTail)
  return `${program} exited with status ${exitCode ?? 'unknown'} ${when}${said === '' ? '.' : `: ${said}`}`
}

const killing = ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGABRT', 'SIGKILL', 'SIGSEGV', 'SIGTERM'] as const
/** A program that heeds a signal, and a shell whose program was ended by one, leave with 128 and its number. */
const signalOf = (exitCode: number | null): string | null =>
  killing.find((name) => exitCode === 128 + constants.signals[name]) ?? null

/** Returns a text as a person reads it: no colours, and no other control characters but line ends. */
export const plainText = (text: string): string =>
  // oxlint-disable-next-line no-control-regex
  stripVTControlCharacters(text).replace(/[\x00-\x09\x0b-\x1f\x7f-\x9f]/g, '')

/** Returns the last line with words in it. */
export function lastWords(text: string): string {
  const lines = plainText(text).split('\n')
  return (lines.findLast((line) => /\p{L}{2}/u.test(line)) ?? '').trim().slice(0, maxSaidChars)
}
