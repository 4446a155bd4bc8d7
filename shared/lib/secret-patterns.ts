import { withoutSecrets } from './secret-shapes.ts'

/**
 * Masks what looks like a secret by its form alone, where the values are not known. A mask never covers a character
 * with a meaning to a shell, so nothing that would be executed can hide behind one.
 */

// Every repetition is bounded, so that each text takes linear time at most.
/** Matches the value after a name that says it is secret, in shell, JSON, YAML and headers. */
const named =
  /((?:password|passwd|passphrase|secret|token|api[-_]?key|access[-_]?key|private[-_]?key|credentials?)(?:[-_][A-Za-z0-9]{1,30}){0,4}["']?\s{0,8}[:=]\s{0,8}["']?)([\w.~+/=-]{6,})/gi
const bearer = /\b((?:bearer|basic)\s+)([A-Za-z0-9._~+/=-]{12,})/gi
/** `https://somebody:password@host` */
const inUrl = /(\b[a-z][a-z0-9+.-]{0,20}:\/\/[^\s/:@]{0,200}:)([\w.~%+-]{1,500})(?=@)/gi

export const mask = '[masked]'
/** References to a secret are no secrets. */
const isReference = (value: string) =>
  /^(?:\$|\{\{|<|\[(?:redacted|masked)\b|\*+$|null$|true$|false$|undefined$)/i.test(value)

/** The text with everything that looks like a secret masked. */
export function maskSecrets(text: string): string {
  let masked = withoutSecrets(text, mask)
  for (const pattern of [named, bearer, inUrl])
    masked = masked.replaceAll(pattern, (whole, before: string, value: string) =>
      isReference(value) ? whole : `${before}${mask}`,
    )
  return masked
}

const secretName = /(?:password|passwd|passphrase|secret|token|api[-_]?key|access[-_]?key|private[-_]?key|credential)/i

/** Masks all strings of a JSON value, and everything under a name that says it is secret. */
export function maskValue(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return maskSecrets(value)
  if (depth > 32) return mask
  if (Array.isArray(value)) return value.map((item) => maskValue(item, depth + 1))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [
      name,
      typeof item === 'string' && item !== '' && secretName.test(name) && !isReference(item)
        ? mask
        : maskValue(item, depth + 1),
    ]),
  )
}
