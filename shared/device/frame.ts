import { binaryHeader, type BinaryHeader } from './protocol.ts'
import { parseStorable } from '../lib/storable.ts'
import { linkLimits } from './limits.ts'

/**
 * A binary frame: four bytes with the header's length (big endian), the header as JSON, then the body, which a receiver
 * may store without reading it.
 */
export function encodeFrame(header: BinaryHeader, body: Uint8Array): Uint8Array {
  const head = new TextEncoder().encode(JSON.stringify(header))
  const frame = new Uint8Array(4 + head.length + body.length)
  new DataView(frame.buffer).setUint32(0, head.length)
  frame.set(head, 4)
  frame.set(body, 4 + head.length)
  return frame
}

export type DecodedFrame = { ok: true; header: BinaryHeader; body: Uint8Array } | { ok: false; error: string }

/** Decodes a frame. It never throws; `body` is a view into `frame`. */
export function decodeFrame(frame: Uint8Array): DecodedFrame {
  if (frame.length < 4) return { ok: false, error: 'shorter than its length field' }
  const length = new DataView(frame.buffer, frame.byteOffset, frame.byteLength).getUint32(0)
  if (length > linkLimits.headerBytes) return { ok: false, error: `header of ${length} bytes` }
  if (frame.length < 4 + length) return { ok: false, error: 'cut off in its header' }
  let value: unknown
  try {
    value = parseStorable(new TextDecoder('utf-8', { fatal: true }).decode(frame.subarray(4, 4 + length)))
  } catch {
    return { ok: false, error: 'header is not JSON' }
  }
  const parsed = binaryHeader.safeParse(value)
  if (!parsed.success) return { ok: false, error: parsed.error.issues[0]?.message ?? 'header does not fit' }
  return { ok: true, header: parsed.data, body: frame.subarray(4 + length) }
}
