// A server proves that it knows a device's token without being sent it: it answers a number that is used once with an HMAC
// (RFC 2104, SHA-256) under the SHA-256 hash of the token, which is all that a server keeps of a token.

/** Bytes of the number that a device draws for each question, written in hexadecimal. */
export const nonceBytes = 32

export interface ProofQuestion {
  publicId: string
  nonce: string
}

/** `tokenHash`: SHA-256 of the token, in hexadecimal. Returns the proof in hexadecimal. */
export async function serverProof(tokenHash: string, { publicId, nonce }: ProofQuestion): Promise<string> {
  const { subtle } = globalThis.crypto
  const bytes = (text: string) => new TextEncoder().encode(text)
  const key = await subtle.importKey('raw', bytes(tokenHash), { name: 'HMAC', hash: 'SHA-256' }, false, ['sign'])
  const signature = await subtle.sign('HMAC', key, bytes(`svc device server\n${publicId}\n${nonce}`))
  return Array.from(new Uint8Array(signature), (byte) => byte.toString(16).padStart(2, '0')).join('')
}
