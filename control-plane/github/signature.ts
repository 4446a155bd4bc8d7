import { createHmac, timingSafeEqual } from 'node:crypto'

/** Computes the X-Hub-Signature-256 of a body while its bytes arrive. */
export interface SignatureCheck {
  update(bytes: Uint8Array): void
  /** Returns whether the signature fits the bytes, compared in constant time. May be called once. */
  isRight(): boolean
}

/** Returns null for a text that cannot be a signature. */
export function signatureCheck(secret: string, signature: string): SignatureCheck | null {
  const sent = /^sha256=([0-9a-f]{64})$/i.exec(signature)?.[1]
  if (sent === undefined) return null
  const hmac = createHmac('sha256', secret)
  return {
    update: (bytes) => void hmac.update(bytes),
    isRight: () => timingSafeEqual(Buffer.from(sent, 'hex'), hmac.digest()),
  }
}
