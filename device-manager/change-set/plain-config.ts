/** A setting as `git config --list` would print it: section and key in lower case, a sub-section as it is. */
export interface Setting {
  key: string
  value: string
}

const blank = /^[ \t\r]*(?:[#;].*)?$/
const section = /^[ \t]*\[([A-Za-z0-9-]+)(?:[ \t]+"([^"\\]*)")?\][ \t\r]*(?:[#;].*)?$/
const plainEntry = /^[ \t]*([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=[ \t]*([^"\\#;\t\r]*))?\r?$/
/** Any value on one line that git can read: with quotes that are closed, and the escapes that it knows. */
const anyEntry = /^[ \t]*[A-Za-z][A-Za-z0-9-]*[ \t]*=(?:[^"\\#;]|\\["\\ntb]|"(?:[^"\\]|\\["\\ntb])*")*(?:[#;].*)?$/
const maxEntryChars = 10_000
// A backslash at the end goes on in the next line.
const isEntry = (line: string) => line.length <= maxEntryChars && anyEntry.test(line) && !/\\\r?$/.test(line)
/** In these a value counts for us. Anywhere else one that is quoted or escaped is ignored. */
const counted = new Set(['core', 'filter', 'include', 'includeif', 'extensions'])

/**
 * Reads a git config file that is written as git itself writes it. Null for anything else (quoted or escaped values that
 * count, values over several lines, other configs included): then git must be asked.
 */
export function readPlainConfig(text: string): Setting[] | null {
  const settings: Setting[] = []
  let inSection: { name: string; prefix: string } | null = null
  for (const line of text.split('\n')) {
    if (blank.test(line)) continue
    const head = section.exec(line)
    if (head !== null) {
      const name = head[1]!.toLowerCase()
      if (name === 'include' || name === 'includeif') return null
      inSection = { name, prefix: head[2] === undefined ? name : `${name}.${head[2]}` }
      continue
    }
    if (inSection === null) return null
    const entry = plainEntry.exec(line)
    if (entry !== null) {
      const value = entry[2] === undefined ? 'true' : entry[2].replace(/ +$/, '')
      settings.push({ key: `${inSection.prefix}.${entry[1]!.toLowerCase()}`, value })
      continue
    }
    if (counted.has(inSection.name) || !isEntry(line)) return null
  }
  return settings
}
