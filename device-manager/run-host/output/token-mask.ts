import { maskOwnTokens, maxTokenChars, mayHoldToken, openToken } from '../../../shared/lib/own-tokens.ts'

/** Masks tokens of this service in bytes that come in any cuts; it holds back only what may be or become one. */
export class OwnTokenMask {
  #held: Buffer = Buffer.alloc(0)

  push(chunk: Uint8Array): Uint8Array {
    if (chunk.length === 0) return chunk
    const bytes = Buffer.concat([this.#held, chunk])
    const tail = bytes.toString('latin1', Math.max(0, bytes.length - maxTokenChars))
    const open = openToken.exec(tail)?.[0].length ?? 0
    this.#held = bytes.subarray(bytes.length - open)
    return masked(bytes.subarray(0, bytes.length - open))
  }

  flush(): Uint8Array {
    const rest = masked(this.#held)
    this.#held = Buffer.alloc(0)
    return rest
  }
}

function masked(bytes: Buffer): Buffer {
  return mayHoldToken(bytes) ? Buffer.from(maskOwnTokens(bytes.toString('latin1')), 'latin1') : bytes
}
