import { StringDecoder } from 'node:string_decoder'
import { Transform } from 'node:stream'
import { parseJsonText } from '../../../shared/lib/lines.ts'
import { isSkillAddress } from '../../../shared/runs/server-skills.ts'
import { ProxyError } from './credential.ts'

// Entries of lists that name skills of a server are taken out, where the server is not trusted for skills: to read one is refused, so
// that an agent which sees it would only try in vain.

/** A list is held until it is whole, and so is an event of a stream. */
export const mostListBytes = 4 * 1024 * 1024

/** Returns the bytes of an answer in JSON without the entries of skills; as they came where there are none. */
export function withoutSkillEntries(bytes: Buffer): Buffer {
  const text = bytes.toString('utf8')
  const kept = filtered(text)
  return kept === text ? bytes : Buffer.from(kept)
}

function filtered(text: string): string {
  const said = parseJsonText(text)
  const messages: unknown[] = Array.isArray(said) ? said : [said]
  // Each message is looked at: `some` would stop at the first that is changed.
  const changed = messages.map(takenOut).includes(true)
  return changed ? JSON.stringify(said) : text
}

/** Takes the entries out of the message itself, and returns whether there were any. */
function takenOut(message: unknown): boolean {
  const result = fieldsOf(fieldsOf(message)['result'])
  let isChanged = false
  for (const [list, address] of [
    ['resources', 'uri'],
    ['resourceTemplates', 'uriTemplate'],
  ] as const) {
    const entries = result[list]
    if (!Array.isArray(entries)) continue
    const others = entries.filter((entry) => !isSkillAddress(fieldsOf(entry)[address]))
    if (others.length === entries.length) continue
    result[list] = others
    isChanged = true
  }
  return isChanged
}

const fieldsOf = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}

/** Takes the entries of skills out of a stream of events, and passes each event on when it is whole. */
export function skillEntryFilter(): Transform {
  const decoder = new StringDecoder('utf8')
  const blank = /\r\n\r\n|\n\n|\r\r/g
  let held = ''
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      // The text before has no end of an event, but may have the beginning of one.
      blank.lastIndex = Math.max(0, held.length - 3)
      held += decoder.write(chunk)
      const out: string[] = []
      let at = 0
      for (let end = blank.exec(held); end !== null; end = blank.exec(held)) {
        const next = end.index + end[0].length
        out.push(rewritten(held.slice(at, next)))
        at = next
      }
      held = held.slice(at)
      if (held.length > mostListBytes) return done(new ProxyError('an event of its stream is too large'))
      done(null, out.join(''))
    },
    flush(done) {
      done(null, rewritten(held + decoder.end()))
    },
  })
}

/** Returns the event without entries of skills; others are returned as they came. */
function rewritten(event: string): string {
  const lines = event.split(/\r\n|\n|\r/)
  const data = lines.flatMap((line) => /^data: ?(.*)$/s.exec(line)?.slice(1) ?? []).join('\n')
  const kept = filtered(data)
  if (kept === data) return event
  return [...lines.filter((line) => line !== '' && !line.startsWith('data')), `data: ${kept}`, '', ''].join('\n')
}
