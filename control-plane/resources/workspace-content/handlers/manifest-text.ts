// Texts of strangers as Markdown that no text can end.

export function facts(values: Record<string, string | null>): string[] {
  return Object.entries(values).flatMap(([name, value]) => (value === null ? [] : [`- ${name}: ${span(value)}`]))
}

/** A section about one thing, under its name. */
export const section = (name: string, values: Record<string, string | null>): string[] => [
  '',
  `### ${span(name)}`,
  '',
  ...facts(values),
]

/** A code span with as many backticks as the text needs. */
export function span(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  const ticks = '`'.repeat(longestRun(line) + 1)
  const pad = line.startsWith('`') || line.endsWith('`') ? ' ' : ''
  return line === '' ? '(empty)' : `${ticks}${pad}${line}${pad}${ticks}`
}

export function fence(text: string, language: 'markdown' | 'csv' | 'js' = 'markdown'): string[] {
  const ticks = '`'.repeat(Math.max(3, longestRun(text) + 1))
  return [`${ticks}${language}`, text, ticks]
}

const longestRun = (text: string): number =>
  (text.match(/`+/g) ?? []).reduce((longest, run) => Math.max(longest, run.length), 0)
