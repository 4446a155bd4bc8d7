import { failureOf } from './failure.ts'
import { runGit } from './git.ts'

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

/**
 * The settings a private git folder takes over from the person's and the repository's config: those that say what a file's content
 * is and which files count. None of them can name a program.
 */
export const carriedKeys = [
  'core.filemode',
  'core.symlinks',
  'core.ignorecase',
  'core.precomposeunicode',
  'core.autocrlf',
  'core.eol',
  'core.trustctime',
  'core.checkstat',
  'core.excludesfile',
  'core.attributesfile',
  'core.sparsecheckout',
  'core.sparsecheckoutcone',
] as const
type CarriedKey = (typeof carriedKeys)[number]

export interface CarriedSettings {
  values: Partial<Record<CarriedKey, string>>
  /** Names of configured filter drivers; files under one of them are listed without content. */
  filters: string[]
}

/** Reads the config in force in the folder. Listing it runs nothing. */
export async function readGitSettings(folder: string, timeoutMs: number): Promise<CarriedSettings> {
  const outcome = await runGit({ args: ['config', '--list', '-z'], cwd: folder, timeoutMs, maxBytes: 4 * 1024 * 1024 })
  if (!outcome.ok) throw failureOf(outcome, 'reading the settings of the repository')
  const entries = outcome.stdout.toString('utf8').split('\0')
  return settingsFrom(entries.filter(Boolean).map(parseEntry))
}

function parseEntry(entry: string): Setting {
  const newline = entry.indexOf('\n')
  // A key without `=` means true.
  return newline < 0 ? { key: entry, value: 'true' } : { key: entry.slice(0, newline), value: entry.slice(newline + 1) }
}

/** Picks those that are carried over from all settings in force, in the order in which git reads them. */
export function settingsFrom(entries: readonly Setting[]): CarriedSettings {
  const values: Partial<Record<CarriedKey, string>> = {}
  const filters = new Set<string>()
  for (const { key, value } of entries) {
    const carried = carriedKeys.find((name) => name === key)
    if (carried !== undefined) values[carried] = value
    const filter = /^filter\.(.+)\.(?:clean|smudge|process|required)$/s.exec(key)?.[1]
    if (filter !== undefined) filters.add(filter)
  }
  return { values, filters: [...filters].slice(0, 1_000) }
}

/** The config file of a private git folder. */
export function renderConfig(
  settings: CarriedSettings['values'],
  objectFormat: 'sha1' | 'sha256',
  fileBytes: number,
): string {
  const lines = [
    '[core]',
    '\tbare = false',
    `\tbigFileThreshold = ${fileBytes}`,
    '\tlooseCompression = 1',
    '\tsafecrlf = false',
    '\tfsyncMethod = batch',
  ]
  lines.push(`\trepositoryformatversion = ${objectFormat === 'sha256' ? 1 : 0}`)
  for (const key of carriedKeys) {
    const value = settings[key]
    if (value !== undefined) lines.push(`\t${key.slice('core.'.length)} = ${quote(value)}`)
  }
  if (objectFormat === 'sha256') lines.push('[extensions]', '\tobjectFormat = sha256')
  return lines.join('\n') + '\n'
}

function quote(value: string): string {
  const escaped = value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n').replaceAll('\t', '\\t')
  return `"${escaped}"`
}
