import type { z } from 'zod'
import { maskOwnTokens } from '../../shared/lib/own-tokens.ts'
import type { Setting } from './kinds.ts'
import { variables, type VariableName } from './variables.ts'

// Sentences about settings that cannot be used: the variable, what it must be, what it is, and an example.

type Value = string | number

/** Where a value came from: the flags of the command line go before the environment. */
export interface SettingSources {
  values: Readonly<Partial<Record<VariableName, Value>>>
  /** Variables that a flag has set, with the flag. */
  flags: Readonly<Partial<Record<VariableName, string>>>
}

/** One sentence for each variable. */
export function refusalsOf(issues: readonly z.core.$ZodIssue[], given: SettingSources): string[] {
  const first = new Map<VariableName, z.core.$ZodIssue>()
  for (const issue of issues) {
    const name = issue.path[0] as VariableName
    if (!first.has(name)) first.set(name, issue)
  }
  return [...first].map(([name, issue]) => {
    const { must }: Setting = variables[name]
    return refusal(name, issue.code === 'custom' && issue.message !== 'Invalid input' ? issue.message : must, given)
  })
}

export function refusal(name: VariableName, must: string, given: SettingSources): string {
  const { example, isSecret }: Setting = variables[name]
  const flag = given.flags[name]
  const value = given.values[name]
  const sentence = `${flag ?? name} must be ${must}; it is ${isSecret === true ? hidden(value) : shown(value)}.`
  // A sentence may end with a word of the example's own form, so the example stands apart.
  return `${sentence} Example: ${flag === undefined ? `${name}=` : `${flag} `}${example}`
}

const longestShown = 100

/** The value as it came, shortened, without what may be secret in an address. */
export function shown(value: Value | undefined): string {
  if (value === undefined || value === '') return value === '' ? 'empty' : 'not set'
  const text = maskOwnTokens(String(value))
    .replace(/^([a-z0-9]+:\/\/)?.*@/is, '$1...@')
    .replace(/^([a-z0-9]+:\/\/[^?]*)\?.+$/is, '$1?...')
  return JSON.stringify(text.length > longestShown ? `${text.slice(0, longestShown)}...` : text)
}

function hidden(value: Value | undefined): string {
  if (value === undefined || value === '') return shown(value)
  return `something else (${String(value).length} characters, not shown here)`
}
