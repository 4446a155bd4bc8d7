// Text of agents, harnesses and servers must not steer the terminal: it could write the clipboard, overwrite what is
// shown, answer in the person's name, or turn the direction of writing. Only colours pass.

const sequences = new RegExp(
  [
    // Control sequences: those that end with `m` set colours.
    String.raw`(?:\u001b\[|\u009b)[\u0030-\u003f]*[\u0020-\u002f]*[\u0040-\u007e]`,
    // Strings for the terminal (titles, clipboard, device control) up to their end; without one only their beginning. Another
    // beginning ends the search, or a text of beginnings alone would be read to its end for each of them.
    String.raw`(?:\u001b[\]PX^_]|[\u0090\u0098\u009d-\u009f])(?:[^\u0007\u001b\u0090\u0098\u009c-\u009f]*(?:\u0007|\u001b\\|\u009c))?`,
    String.raw`\u001b[\u0020-\u002f]*[\u0030-\u007e]?`,
    String.raw`\r\n?`,
    String.raw`[\u0000-\u0008\u000b-\u001f\u007f-\u009f]`,
    String.raw`[\u202a-\u202e\u2066-\u2069]`,
  ].join('|'),
  'gu',
)
// oxlint-disable-next-line no-control-regex
const colour = /^(?:\u001b\[|\u009b)([\d;:]*)m$/u

/** Returns text of several lines with its colours, which end with it. */
export function terminalText(text: string): string {
  let isColoured = false
  const shown = text.replaceAll(sequences, (found) => {
    if (found.startsWith('\r')) return '\n'
    if (/[\u202a-\u202e\u2066-\u2069]/u.test(found)) return '\u{fffd}'
    const settings = colour.exec(found)?.[1]
    if (settings === undefined || hides(settings)) return ''
    isColoured = !/^0*$/.test(settings)
    return `\u001b[${settings}m`
  })
  if (!isColoured) return shown
  return shown.endsWith('\n') ? `${shown.slice(0, -1)}\u001b[0m\n` : `${shown}\u001b[0m`
}

/** Removes the colours, too, for a cell of a table or a name in a sentence. */
export function plainText(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return terminalText(text).replaceAll(/\u001b\[[\d;:]*m/gu, '')
}

/** Puts text of others on one line, so that it cannot pass for lines of svc. Beyond `maxChars` it is not looked at. */
export function oneLine(text: string, maxChars = Infinity): string {
  const shown = text.length > maxChars ? `${text.slice(0, maxChars)}…` : text
  return plainText(shown).replaceAll(/\s+/g, ' ').trim()
}

/** Writes JSON in which nothing steers a terminal: characters that JSON itself leaves unescaped are escaped. */
export function jsonText(value: unknown, indent = 0): string {
  return (JSON.stringify(value, null, indent) ?? 'null').replaceAll(
    /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu,
    (char) => String.raw`\u` + char.charCodeAt(0).toString(16).padStart(4, '0'),
  )
}

/** The setting 8 makes text invisible; after 38, 48 and 58 a number is a colour. */
function hides(settings: string): boolean {
  const numbers = settings.split(';').map((part) => Number(part.split(':')[0]))
  for (let at = 0; at < numbers.length; at++) {
    if (numbers[at] === 8) return true
    if ([38, 48, 58].includes(numbers[at]!)) at += numbers[at + 1] === 2 ? 4 : numbers[at + 1] === 5 ? 2 : 0
  }
  return false
}

/** Matches a possible beginning of a sequence, or of a line end, at the end of a piece of text. */
// oxlint-disable-next-line no-control-regex
export const cutSequence = /(?:\u001b(?:\[[\d;:]{0,40})?|\u009b[\d;:]{0,40}|\r)$/u
