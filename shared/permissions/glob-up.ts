/** The limits beyond which patterns are not looked at: their length, that of all of one call, and the forms of one. */
const limits = { chars: 1_000, allChars: 4_000, forms: 500 }

/**
 * Tells whether one of these patterns of file names may lead up from the folder that it begins in: `..` as a name of the path, in one of
 * the forms that its braces, groups and classes of characters stand for (`{..,a}/x`, `.{.,a}/x`, `@(..)/x`, `.[.a]/x`). A backslash
 * separates names, or takes the meaning from the letter after it (`\.\./x`). Wildcards never stand for `..`. A pattern beyond the limits
 * may lead up.
 */
export function mayLeadUp(patterns: readonly string[]): boolean {
  const chars = patterns.reduce((sum, { length }) => sum + length, 0)
  return chars > limits.allChars || patterns.some(leadsUp)
}

function leadsUp(pattern: string): boolean {
  if (pattern.length > limits.chars) return true
  const forms = [pattern, pattern.replaceAll('\\', '')].map((form) =>
    form.replaceAll(classes, (it) => (/^\[[!^]|\./.test(it) ? '.' : 'a')).replaceAll(groups, bracesOf),
  )
  for (let at = 0; at < forms.length; at++) {
    const form = forms[at]!
    const braces = innermost.exec(form)
    if (braces === null) {
      if (isUp.test(form)) return true
      continue
    }
    const before = form.slice(0, braces.index)
    const after = form.slice(braces.index + braces[0].length)
    for (const one of braces[1]!.split(',')) forms.push(before + one + after)
    if (forms.length > limits.forms) return true
  }
  return false
}

const classes = /\[[!^]?\]?[^\]]*\]/g
const groups = /([?*+@!])\(([^()]*)\)/g
const innermost = /\{([^{}]*)\}/
const isUp = /(?<![\w.-])\.\.(?![\w.-])/

/** A group of alternatives as braces; one that may repeat makes `..` of a dot. */
function bracesOf(_: string, kind: string, alternatives: string): string {
  const all = alternatives.split('|')
  const isOften = kind === '*' || kind === '+'
  const isOptional = kind === '?' || kind === '*'
  return `{${[...(isOptional ? [''] : []), ...all, ...(isOften && all.includes('.') ? ['..'] : [])].join(',')}}`
}
