import { failureOf } from './failure.ts'
import { runGit } from './git.ts'
import type { Setting } from './plain-config.ts'

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
export type CarriedKey = (typeof carriedKeys)[number]

export interface CarriedSettings {
  values: Partial<Record<CarriedKey, string>>
  /** Names of configured filter drivers; files under one of them are listed without content. */
  filters: string[]
}

/** Reads the config in force in the folder. Listing it runs nothing. */
export async function readSettings(folder: string, timeoutMs: number): Promise<CarriedSettings> {
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
