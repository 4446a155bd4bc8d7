/** Matches with `*` for any characters, in time linear in the text for each star, whatever the pattern. */
export function glob(pattern: string, text: string): boolean {
  let at = 0
  let inPattern = 0
  let star = -1
  let starAt = 0
  while (at < text.length) {
    if (pattern[inPattern] === '*') {
      star = inPattern++
      starAt = at
    } else if (inPattern < pattern.length && pattern[inPattern] === text[at]) {
      inPattern++
      at++
    } else if (star >= 0) {
      inPattern = star + 1
      at = ++starAt
    } else {
      return false
    }
  }
  while (pattern[inPattern] === '*') inPattern++
  return inPattern === pattern.length
}

/** Says whether some text that begins with `start` matches. */
export function globReaches(pattern: string, start: string): boolean {
  const star = pattern.indexOf('*')
  const literal = star < 0 ? pattern : pattern.slice(0, star)
  return start.length <= literal.length ? literal.startsWith(start) : star >= 0 && start.startsWith(literal)
}
