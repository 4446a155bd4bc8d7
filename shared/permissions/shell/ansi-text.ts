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

/** Returns what a shell makes of the text within `$'...'`. */
export function ansiText(content: string): string {
  return content.replaceAll(
    /\\(?:x([\da-fA-F]{1,2})|u([\da-fA-F]{1,4})|U([\da-fA-F]{1,8})|([0-7]{1,3})|c(.)|(.))/gs,
    (_, hex?: string, short?: string, long?: string, octal?: string, control?: string, other?: string) => {
      const digits = hex ?? short ?? long
      if (digits !== undefined) return characterOf(Number.parseInt(digits, 16))
      if (octal !== undefined) return characterOf(Number.parseInt(octal, 8))
      if (control !== undefined) return ''
      return letters[other ?? ''] ?? other ?? ''
    },
  )
}
const characterOf = (code: number): string => (code === 0 || code > 0x10_ff_ff ? '' : String.fromCodePoint(code))
