import type { ActorRef } from '../../shared/lib/ids.ts'

// Quotes the words of somebody else in a prompt. A text stands in a block each line of which begins with `> `, so that no text
// can end its block; who wrote it, and whether it asks something of the agent, stands in a line of ours above. A name or a title
// stands in quotation marks on a line of ours. `aboutSvc` (run/wakes/build-spec.ts) tells agents how to read this.

/** Whoever wrote a text. */
export interface Speaker {
  /** `usr_` or `agt_` id. null: the platform, or somebody outside. */
  id: ActorRef | null
  name: string
  /** `@ada`. */
  handle?: string
}

const kinds = {
  /** Asked of the agent by somebody who may wake it. */
  request: 'Request',
  /** Says what the work is, in the words of somebody who did not ask for it. */
  work: 'Description of the work',
  /** Material. */
  information: 'For information',
} as const

export interface Quoted {
  as: keyof typeof kinds
  /** A name of ours for the text: `comment msg_1`. */
  what: string
  /** null: nobody is known. */
  by: Speaker | null
  text: string
}

/** Every line end that a terminal, a model or a language knows, and CRLF as one. */
// oxlint-disable-next-line no-control-regex
const lineEnds = /\r\n|[\n\r\v\f\u001C-\u001E\u0085\u2028\u2029]/u

/** Returns the block with its heading. */
export function quoted({ as, what, by, text }: Quoted): string {
  return `${kinds[as]}: ${what}, by ${nameOf(by)}:\n${quotedLines(text)}`
}

/** Returns the lines of a block, for a text that has a heading of its own. */
export const quotedLines = (text: string): string =>
  text
    .split(lineEnds)
    .map((line) => (line === '' ? '>' : `> ${line}`))
    .join('\n')

/** Control characters, line ends, and marks that turn the direction of what follows. */
const unprintable = /[\p{Cc}\p{Zl}\p{Zp}\u200E\u200F\u202A-\u202E\u2066-\u2069]+/gu

/** Returns a name or title in quotation marks that it cannot end, on one line. */
export const inQuotes = (text: string): string => JSON.stringify(onOneLine(text))

export const onOneLine = (text: string): string => text.replaceAll(unprintable, ' ')

/** Returns how a line of ours names somebody. */
export function nameOf(speaker: Speaker | null): string {
  if (speaker === null) return 'somebody who is not known'
  const ids = [...new Set([speaker.handle, speaker.id].filter((id) => id != null))]
  return ids.length === 0 ? inQuotes(speaker.name) : `${inQuotes(speaker.name)} (${ids.join(', ')})`
}

/** The author of what comes from no account of the workspace. */
export const outsider: Speaker = { id: null, name: 'somebody outside' }
