import type { ByteRange } from '../blobs/place.ts'

/**
 * What a Range header asks of this many bytes (RFC 9110, section 14): one range, `unsatisfiable`, or null when the whole is to
 * be sent, as for several ranges and for what does not read as a range.
 */
export function byteRangeOf(header: string | undefined, sizeBytes: number): ByteRange | 'unsatisfiable' | null {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header?.trim() ?? '')
  if (match === null) return null
  const [first, last] = [match[1]!, match[2]!]
  if (first === '' && last === '') return null
  if (first === '') {
    const length = Math.min(Number(last), sizeBytes)
    return length === 0 ? 'unsatisfiable' : { start: sizeBytes - length, end: sizeBytes }
  }
  if (last !== '' && Number(last) < Number(first)) return null
  if (Number(first) >= sizeBytes) return 'unsatisfiable'
  return { start: Number(first), end: last === '' ? sizeBytes : Math.min(Number(last) + 1, sizeBytes) }
}

/** Whether one of the tags of an If-None-Match is this one. */
export const isTagged = (header: string | undefined, tag: string): boolean =>
  header !== undefined &&
  header
    .split(',')
    .map((one) => one.trim().replace(/^W\//, ''))
    .some((one) => one === tag || one === '*')
