import { createHmac, timingSafeEqual } from 'node:crypto'

/** Works out what X-Hub-Signature-256 must be while the bytes come. */
export interface SignatureCheck {
  update(bytes: Uint8Array): void
  /** Whether it is that of the bytes; compared in constant time. To be asked once. */
  isRight(): boolean
}

/** Null for a signature that none can be. */
export function signatureCheck(secret: string, signature: string): SignatureCheck | null {
  const sent = /^sha256=([0-9a-f]{64})$/i.exec(signature)?.[1]
  if (sent === undefined) return null
  const hmac = createHmac('sha256', secret)
  return {
    update: (bytes) => void hmac.update(bytes),
    isRight: () => timingSafeEqual(Buffer.from(sent, 'hex'), hmac.digest()),
  }
}
