import { idFrom } from '../lib/ids.ts'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeFrame, encodeFrame } from './frame.ts'
import { linkLimits } from './limits.ts'
import type { EventsHeader } from './protocol.ts'

const header: EventsHeader = {
  type: 'run.events',
  runId: idFrom('run_0123456789abcdef'),
  fence: 2,
  firstSeq: 1,
  lastSeq: 3,
  kinds: { text: 3 },
  sha256: 'a'.repeat(64),
}

describe('binary frames', () => {
  it('carry a body byte for byte', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 2_000 }), (body) => {
        const decoded = decodeFrame(encodeFrame(header, body))
        if (!decoded.ok) throw new Error(decoded.error)
        expect(decoded.header).toEqual(header)
        expect(Buffer.from(decoded.body)).toEqual(Buffer.from(body))
      }),
    )
  })

  it('answer any bytes with a header or an error, and throw nothing', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        expect(typeof decodeFrame(bytes).ok).toBe('boolean')
      }),
    )
    const whole = encodeFrame(header, new Uint8Array(0))
    for (let cut = 0; cut < whole.length; cut++) expect(decodeFrame(whole.subarray(0, cut)).ok).toBe(false)
  })

  it('refuse more events than a device puts into one, and numbers that run backwards', () => {
    const read = (firstSeq: number, lastSeq: number) =>
      decodeFrame(encodeFrame({ ...header, firstSeq, lastSeq }, new Uint8Array(0))).ok
    expect([read(7, 7), read(1, linkLimits.frameEvents), read(5, linkLimits.frameEvents + 4)]).toEqual([
      true,
      true,
      true,
    ])
    expect([read(8, 7), read(1, linkLimits.frameEvents + 1), read(1, Number.MAX_SAFE_INTEGER)]).toEqual([
      false,
      false,
      false,
    ])
  })

  it('refuse a header that says it is longer than a header may be', () => {
    const frame = new Uint8Array(8)
    new DataView(frame.buffer).setUint32(0, 10_000_000)
    expect(decodeFrame(frame)).toEqual({ ok: false, error: 'header of 10000000 bytes' })
  })
})
