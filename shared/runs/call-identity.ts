import { canonicalJson } from '../lib/canonical-json.ts'

/**
 * The text whose SHA-256 (hex) is a tool call's digest: name and input as canonical JSON. What a harness's model words anew
 * each time for a reader's eyes, and what does nothing, is no part of it: a call that a person allowed is known again.
 */
export function callIdentity(name: string, input: unknown): string {
  return canonicalJson([name, essenceOf(name, input)])
}

/** By tool: fields that are words for a reader. */
const wordsOf: Readonly<Record<string, readonly string[]>> = { Bash: ['description'] }

function essenceOf(name: string, input: unknown): unknown {
  const words = Object.hasOwn(wordsOf, name) ? wordsOf[name]! : []
  if (words.length === 0 || typeof input !== 'object' || input === null || Array.isArray(input)) return input
  return Object.fromEntries(Object.entries(input).filter(([field]) => !words.includes(field)))
}
