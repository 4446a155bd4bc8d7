import { fileTypeFromBuffer } from 'file-type'
import { lookup } from 'mime-types'

/** The type of bytes: their file's name says it; where it says none, it is found out by what they begin with. */
export interface DetectedType {
  contentType: string
  /** The beginning of a text; null when it is none. */
  textPreview: string | null
}

const previewLength = 500
/** Endings that are registered for another type than that of the texts which people name so: TypeScript, public keys, ... */
const alsoOfTexts = /\.(?:[mc]?ts|rs|key|pub|org|pot|dot|vhd|bat|sub)$/i

export async function detectType(
  head: Uint8Array,
  { name, sizeBytes, sent }: { name: string; sizeBytes: number; sent?: string | null | undefined },
): Promise<DetectedType> {
  const byBytes = (await fileTypeFromBuffer(head).catch(() => undefined))?.mime
  const isSeenAsText = byBytes === undefined || isTextType(byBytes)
  const text = isSeenAsText ? textOf(head, head.length < sizeBytes) : null
  const textPreview = text === null ? null : beginningOf(text)
  const byName = text !== null && alsoOfTexts.test(name) ? null : lookup(name) || null
  const found = byBytes ?? (text === null ? 'application/octet-stream' : 'text/plain')
  return { contentType: sent ?? byName ?? found, textPreview }
}

/** Whole characters only, so that no pair of surrogates is cut. */
const beginningOf = (text: string): string =>
  Array.from(text.slice(0, previewLength * 2))
    .slice(0, previewLength)
    .join('')

const textTypes =
  /^(text\/.*|application\/(.*\+)?(json|xml|yaml|javascript|toml|sql|x-sh|x-ndjson|rtf)|image\/svg\+xml)$/
export const isTextType = (type: string): boolean => textTypes.test(type)

/** The text that the bytes are, in UTF-8 and without control characters; null when they are none. */
export function textOf(bytes: Uint8Array, isCut = false): string | null {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: isCut })
  } catch {
    return null
  }
  // oxlint-disable-next-line no-control-regex
  return /[\u0000-\u0008\u000e-\u001a\u001c-\u001f]/.test(text) ? null : text
}
