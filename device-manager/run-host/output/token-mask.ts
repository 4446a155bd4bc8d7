import { beforeToken, maskOwnTokens, maxTokenChars, mayHoldToken, openToken } from '../../../shared/lib/own-tokens.ts'

const nothing = new Uint8Array(0)

/** Masks tokens of this service in bytes that come in any cuts; it holds back only what may be or become one. */
export class OwnTokenMask {
  #held: Buffer = Buffer.alloc(0)
  /** So many bytes of what is held were released. */
  #shown = 0

  push(chunk: Uint8Array): Uint8Array {
    if (chunk.length === 0) return chunk
    const bytes = Buffer.concat([this.#held, chunk])
    const tail = bytes.toString('latin1', Math.max(0, bytes.length - maxTokenChars))
    const open = openToken.exec(tail)?.[0].length ?? 0
    return this.#take(bytes, bytes.length - open)
  }

  flush(): Uint8Array {
    return this.#take(this.#held, this.#held.length)
  }

  /** Returns what is held back and has nothing of a token yet but what all of them begin with. */
  release(): Uint8Array {
    if (!beforeToken.test(this.#held.toString('latin1'))) return nothing
    const rest = this.#held.subarray(this.#shown)
    this.#shown = this.#held.length
    return rest
  }

  get isHolding(): boolean {
    return this.#held.length > this.#shown
  }

  /** Returns the first bytes and holds the others. */
  #take(bytes: Buffer, safe: number): Uint8Array {
    const shown = bytes.subarray(0, Math.min(this.#shown, safe))
    this.#shown -= shown.length
    this.#held = bytes.subarray(safe)
    const rest = masked(bytes.subarray(0, safe))
    // Else what was shown became a token, whose name stands in its place.
    return rest.subarray(0, shown.length).equals(shown) ? rest.subarray(shown.length) : rest
  }
}

function masked(bytes: Buffer): Buffer {
  return mayHoldToken(bytes) ? Buffer.from(maskOwnTokens(bytes.toString('latin1')), 'latin1') : bytes
}
