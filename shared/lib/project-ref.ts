import { idFrom, type ProjectUuid } from './ids.ts'
import { base62Digits } from './world.ts'

/**
 * A project's UUID as the `prj_` id that tasks show: its 128 bits as 22 base62 digits. Both forms name the same
 * project.
 */
const length = 22
const uuidForm = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

export function toProjectRef(uuid: string): string {
  let rest = BigInt(`0x${uuid.replaceAll('-', '')}`)
  let text = ''
  for (let at = 0; at < length; at++) {
    text = (base62Digits[Number(rest % 62n)] ?? '') + text
    rest /= 62n
  }
  return `prj_${text}`
}

/** The UUID that a `prj_` id or a UUID names; null when it is neither. */
export function projectUuidOf(reference: string): ProjectUuid | null {
  const lower = reference.toLowerCase()
  if (uuidForm.test(lower)) return idFrom(lower)
  if (!/^prj_[0-9A-Za-z]{22}$/.test(reference)) return null
  let value = 0n
  for (const digit of reference.slice(4)) value = value * 62n + BigInt(base62Digits.indexOf(digit))
  if (value >= 1n << 128n) return null
  const hex = value.toString(16).padStart(32, '0')
  return idFrom([hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-'))
}
