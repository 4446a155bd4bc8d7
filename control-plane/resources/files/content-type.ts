import { fileTypeFromBuffer } from 'file-type'
import { lookup } from 'mime-types'

/** What bytes are: found out by what they begin with, then by the name of the file. */
export interface Nature {
  contentType: string
  /** The beginning of a text; null when it is none. */
  textPreview: string | null
}

const previewLength = 500
/** What bytes of many kinds begin with: a name that says more is believed. */
const containers = new Set(['application/zip', 'application/x-cfb', 'application/xml', 'application/gzip'])

export async function natureOf(
  head: Uint8Array,
  { name, sizeBytes, sent }: { name: string; sizeBytes: number; sent?: string | null | undefined },
): Promise<Nature> {
  const byBytes = (await fileTypeFromBuffer(head).catch(() => undefined))?.mime
  const byName = lookup(name) || null
  const isSeenAsText = byBytes === undefined || isTextType(byBytes)
  const text = isSeenAsText ? textOf(head, head.length < sizeBytes) : null
  const textPreview = text === null ? null : beginningOf(text)
  if (sent != null) return { contentType: sent, textPreview }
  if (text !== null) {
    const type = [byName, byBytes].find((candidate) => candidate != null && isTextType(candidate))
    return { contentType: type ?? 'text/plain', textPreview }
  }
  const isBetter = byName !== null && !isTextType(byName) && (byBytes === undefined || containers.has(byBytes))
  return { contentType: (isBetter ? byName : byBytes) ?? 'application/octet-stream', textPreview }
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
