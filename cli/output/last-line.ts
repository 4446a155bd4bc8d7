import { textAt } from '../replies/fields.ts'
import { callTitle } from './live-run.ts'
import { plainText } from './terminal-text.ts'

/** Of a line that a program prints without an end more is not looked at. */
const mostChars = 500

/**
 * Returns the last thing that a run said, thought or began, in one line; null: nothing of these events is told. `events`: the newest first, as the
 * server sends them.
 */
export function lastLineOf(events: readonly unknown[]): string | null {
  let said = ''
  for (const event of events) {
    const kind = textAt(event, 'kind')
    if (kind === 'text' || kind === 'thinking') {
      said = textOf(event) + said
      const line = lastOf(said)
      // What stands before it in the line may be in the event before.
      if (line !== null && (said.trimEnd().includes('\n') || said.length > mostChars)) return line
    } else if (lastOf(said) !== null) return lastOf(said)
    else if (kind === 'tool_call') return callTitle(event).slice(0, mostChars)
  }
  return lastOf(said)
}

function lastOf(text: string): string | null {
  const lines = plainText(text).split('\n')
  const line = lines.findLast((each) => each.trim() !== '')?.trim()
  return line === undefined ? null : line.slice(0, mostChars)
}

/** What is cut within a character shows so: the piece before it has its beginning. */
function textOf(event: unknown): string {
  if (textAt(event, 'data', 'parentToolCallId') !== null) return ''
  const base64 = textAt(event, 'data', 'base64')
  return base64 === null ? (textAt(event, 'data', 'text') ?? '') : Buffer.from(base64, 'base64').toString('utf8')
}
