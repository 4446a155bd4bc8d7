import { parseJsonText } from '../../shared/lib/lines.ts'
import { fieldAt } from '../replies/fields.ts'
import type { CliEnvironment } from './environment.ts'
import { readIfThere } from './files.ts'
import { settingsPath } from './paths.ts'

// What a person chose for svc on this machine. Flags and variables of the environment count more, and runs have none of it.

/** Each setting with the values that it takes; null: any text. */
export const settingValues = {
  color: ['auto', 'always', 'never'],
  output: ['json', 'table', 'tsv'],
  pager: null,
} as const satisfies Record<string, readonly string[] | null>
export type SettingName = keyof typeof settingValues
export const settingNames: readonly SettingName[] = ['color', 'output', 'pager']

export type Settings = Readonly<Partial<Record<SettingName, string>>>

/** Ignores what it cannot read: a setting of how things look must not keep svc from its work. */
export async function readSettings(env: CliEnvironment): Promise<Settings> {
  if (env.run !== null || env.runId !== null) return {}
  try {
    const stored = parseJsonText(readIfThere(await settingsPath(env)) ?? '')
    return Object.fromEntries(
      settingNames.flatMap((name) => {
        const value = fieldAt(stored, name)
        return typeof value === 'string' && takes(name, value) ? [[name, value]] : []
      }),
    )
  } catch {
    return {}
  }
}

export function takes(name: SettingName, value: string): boolean {
  const values: readonly string[] | null = settingValues[name]
  return values === null ? value !== '' && value.length <= 1_000 : values.includes(value)
}
