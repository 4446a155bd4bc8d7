import { canonicalJson } from '../lib/canonical-json.ts'

/**
 * The text whose SHA-256 (hex) is a tool call's digest: name and input as canonical JSON. It leaves out fields without
 * an effect that models word anew each time for readers, so that a call that a person allowed is recognised.
 */
export function callIdentity(name: string, input: unknown): string {
  return canonicalJson([name, essenceOf(name, input)])
}

/** The fields of each tool that are words for readers. */
const wordsOf: Readonly<Record<string, readonly string[]>> = { Bash: ['description'] }

function essenceOf(name: string, input: unknown): unknown {
  const words = Object.hasOwn(wordsOf, name) ? wordsOf[name]! : []
  if (words.length === 0 || typeof input !== 'object' || input === null || Array.isArray(input)) return input
  return Object.fromEntries(Object.entries(input).filter(([field]) => !words.includes(field)))
}
