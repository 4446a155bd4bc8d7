import { createHmac, timingSafeEqual } from 'node:crypto'

/** Whether X-Hub-Signature-256 is that of these bytes; compared in constant time. */
export function isSignedWith(secret: string, body: Uint8Array, signature: string): boolean {
  const sent = /^sha256=([0-9a-f]{64})$/i.exec(signature)?.[1]
  const expected = createHmac('sha256', secret).update(body).digest()
  return sent !== undefined && timingSafeEqual(Buffer.from(sent, 'hex'), expected)
}
