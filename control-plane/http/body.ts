import type { IncomingMessage } from 'node:http'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import { getRawBody } from 'raw-body'
import { fail } from '../../shared/api/errors.ts'

/** Reads request bodies: the limit counts bytes after inflating, and what is not JSON we can store is refused. */

/** Deeper JSON is refused before recursive code sees it. */
const maxDepth = 100

/** Fails with `payload_too_large` when more than `limit` bytes come, counted after inflating. */
export async function readBytes(request: IncomingMessage, limit: number): Promise<Buffer> {
  const length = request.headers['content-length']
  if (length === undefined && request.headers['transfer-encoding'] === undefined) return Buffer.alloc(0)
  // What is packed is never larger than what it holds, but for a few bytes: the limit goes for both.
  if (Number(length) > limit) return refuseTooLarge(request, limit)
  const encoding = (request.headers['content-encoding'] ?? 'identity').trim().toLowerCase()
  const inflate = inflaterOf(encoding)
  try {
    if (inflate === null) return await getRawBody(request, { limit, length: length ?? null })
    request.on('error', (error) => inflate.destroy(error))
    request.on('close', () => {
      if (!request.complete) inflate.destroy(new Error('the request was cut off'))
    })
    return await getRawBody(request.pipe(inflate), { limit })
  } catch (error) {
    if (inflate !== null) {
      request.unpipe(inflate)
      inflate.destroy()
    }
    const { type } = error as { type?: string }
    if (type === 'entity.too.large') return refuseTooLarge(request, limit)
    return fail('validation_error', {
      message: inflate === null ? 'The body was cut off.' : 'The body is not what Content-Encoding says.',
      param: inflate === null ? 'body' : 'Content-Encoding',
      cause: error,
    })
  }
}

function inflaterOf(encoding: string) {
  if (encoding === 'identity') return null
  if (encoding === 'gzip' || encoding === 'x-gzip') return createGunzip()
  if (encoding === 'deflate') return createInflate()
  if (encoding === 'br') return createBrotliDecompress()
  return fail('validation_error', {
    message: 'This Content-Encoding is not read.',
    param: 'Content-Encoding',
    allowedValues: ['identity', 'gzip', 'deflate', 'br'],
  })
}

/**
 * The rest is read and thrown away while the answer goes out: closing on a sender that still sends would reset the
 * connection, and it would see only that. The server's request timeout ends a sender that never stops.
 */
function refuseTooLarge(request: IncomingMessage, limit: number): never {
  request.resume()
  return fail('payload_too_large', {
    message: `The body is larger than the ${limit} bytes this route takes.`,
    details: { limitBytes: limit },
  })
}

/** The JSON of a body; an empty one is `{}`. */
export function parseJson(bytes: Buffer, contentType: string | undefined): unknown {
  if (bytes.length === 0) return {}
  if (contentType !== undefined && !/^application\/(?:[\w.-]+\+)?json\s*(;|$)/i.test(contentType)) {
    fail('validation_error', { message: 'Send the body as application/json.', param: 'Content-Type' })
  }
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (error) {
    fail('validation_error', { message: 'The body is not JSON in UTF-8.', param: 'body', cause: error })
  }
  const flaw = flawOf(value, [])
  if (flaw === null) return value
  return fail('validation_error', {
    message: 'The body holds something that cannot be stored.',
    param: flaw.path || 'body',
    details: { fields: [flaw] },
  })
}

/** Text that PostgreSQL cannot hold (NUL) or UTF-8 cannot write (half a surrogate pair), a dangerous key, or depth. */
function flawOf(value: unknown, path: readonly (string | number)[]): { path: string; message: string } | null {
  if (typeof value === 'string') return textFlaw(value, path)
  if (typeof value !== 'object' || value === null) return null
  if (path.length >= maxDepth) return { path: path.slice(0, 10).join('.'), message: 'nested too deeply' }
  const entries = Array.isArray(value) ? value.entries() : Object.entries(value)
  for (const [key, item] of entries) {
    const at = [...path, key]
    const flaw = (typeof key === 'string' ? keyFlaw(key, path) : null) ?? flawOf(item, at)
    if (flaw !== null) return flaw
  }
  return null
}

function keyFlaw(key: string, path: readonly (string | number)[]) {
  return key === '__proto__' ? { path: path.join('.'), message: 'the key __proto__' } : textFlaw(key, path)
}

export function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed()
}

function textFlaw(text: string, path: readonly (string | number)[]) {
  return isStorable(text) ? null : { path: path.join('.'), message: 'a NUL character or an unpaired surrogate' }
}
