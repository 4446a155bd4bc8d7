import { withoutSecrets } from './secret-shapes.ts'

// Masks what looks like a secret by its form alone, where the values are not known. A mask never covers a character
// with a meaning to a shell, so nothing that would be executed can hide behind one.

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

/** Says of a value, from where it begins to where it ends, whether it may be masked. */
type MayMask = (valueAt: number, to: number) => boolean

/**
 * The text with everything that looks like a secret masked. `mayMaskIn`: the text is a shell command, in which a value with a blank
 * before it (`x=token: value`) may be the program that is run, so it decides.
 */
export function maskSecrets(text: string, mayMaskIn?: (text: string) => MayMask): string {
  let masked = withoutSecrets(text, mask)
  for (const pattern of [named, bearer, inUrl]) {
    const current = masked
    // The function is made when it is needed: most commands have no such value, and reading one takes longer than looking for it.
    let mayMask: MayMask | undefined
    masked = current.replaceAll(pattern, (whole: string, before: string, value: string, at: number) => {
      if (mayMaskIn !== undefined && /\s["']?$/.test(before)) {
        mayMask ??= mayMaskIn(current)
        if (!mayMask(at + before.length, at + whole.length)) return whole
      }
      return isReference(value) ? whole : `${before}${mask}`
    })
  }
  return masked
}

const secretName = /(?:password|passwd|passphrase|secret|token|api[-_]?key|access[-_]?key|private[-_]?key|credential)/i

/** `field`: the name under which the text stands; empty for none. */
type TextMask = (text: string, field: string) => string

/** Masks all strings of a JSON value, and everything under a name that says it is secret. */
export function maskValue(value: unknown, maskText: TextMask = (text) => maskSecrets(text)): unknown {
  const masked = (each: unknown, field: string, depth: number): unknown => {
    if (typeof each === 'string')
      return each !== '' && secretName.test(field) && !isReference(each) ? mask : maskText(each, field)
    if (depth > 32) return mask
    if (Array.isArray(each)) return each.map((item: unknown) => masked(item, field, depth + 1))
    if (typeof each !== 'object' || each === null) return each
    return Object.fromEntries(Object.entries(each).map(([name, item]) => [name, masked(item, name, depth + 1)]))
  }
  return masked(value, '', 0)
}
