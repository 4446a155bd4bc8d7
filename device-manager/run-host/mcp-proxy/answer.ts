import type { IncomingMessage } from 'node:http'
import { Transform } from 'node:stream'
import type { Redactor } from '../../../shared/lib/redact.ts'
import { ProxyError } from './credential.ts'

/** An answer of at most this size is read whole before it is passed on. */
const shortBytes = 64 * 1024

/** Reads an answer to its end, or until it is no short one. Rejects with ProxyError when it breaks off. */
export async function beginOf(
  answer: IncomingMessage,
  mostBytes = shortBytes,
): Promise<{ bytes: Buffer; isWhole: boolean }> {
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of answer.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes > mostBytes) return { bytes: Buffer.concat(chunks), isWhole: false }
    }
  } catch {
    throw new ProxyError('its answer broke off')
  }
  return { bytes: Buffer.concat(chunks), isWhole: true }
}

export function redactedWhole(of: Redactor, bytes: Buffer): Buffer {
  const redactor = of.another()
  return Buffer.concat([redactor.push(bytes), redactor.flush()])
}

/** Bytes that are held back are let go when nothing more came for this long. */
const releaseMs = 20

/** Takes the values out of an answer that a server says back. */
export function redacting(of: Redactor): Transform {
  const redactor = of.another()
  let timer: NodeJS.Timeout | null = null
  const stopTimer = () => {
    if (timer !== null) clearTimeout(timer)
    timer = null
  }
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      stopTimer()
      const out = redactor.push(chunk)
      if (redactor.isHolding) timer = setTimeout(() => this.push(redactor.release()), releaseMs)
      done(null, out)
    },
    flush(done) {
      stopTimer()
      done(null, redactor.flush())
    },
    destroy(error, done) {
      stopTimer()
      done(error)
    },
  })
}
