const letters: Readonly<Record<string, string>> = {
  n: '\n',
  t: '\t',
  r: '\r',
  a: '',
  b: '',
  e: '',
  E: '',
  f: ' ',
  v: ' ',
}
const escapes = /\\(?:x(\{)|x([\da-fA-F]{1,2})|u([\da-fA-F]{1,4})|U([\da-fA-F]{1,8})|([0-7]{1,3})|c(.)|(.))/gs

export interface AnsiText {
  text: string
  /** A character zero ends it: what follows in the word is dropped by some shells, and by the system for others. */
  endsAtZero: boolean
  /** False for what shells read in different ways: digits in braces, octal numbers above a byte, text after a zero. */
  isCertain: boolean
}

/** Returns what a shell makes of the text within `$'...'`. */
export function ansiText(content: string): AnsiText {
  let text = ''
  let end = 0
  let isCertain = true
  for (const escape of content.matchAll(escapes)) {
    const [all, brace, hex, short, long, octal, control, other] = escape
    text += content.slice(end, escape.index)
    end = escape.index + all.length
    const digits = hex ?? short ?? long
    const code =
      digits === undefined ? (octal === undefined ? null : Number.parseInt(octal, 8)) : Number.parseInt(digits, 16)
    if (code === 0 || control === '@') return { text, endsAtZero: true, isCertain: isCertain && end === content.length }
    if (brace !== undefined || (octal !== undefined && code! > 0xff)) isCertain = false
    if (code !== null) text += characterOf(code)
    else if (other !== undefined) text += letters[other] ?? other
  }
  return { text: text + content.slice(end), endsAtZero: false, isCertain }
}
const characterOf = (code: number): string => (code > 0x10_ff_ff ? '' : String.fromCodePoint(code))
