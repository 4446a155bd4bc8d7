import type { z } from 'zod'

/**
 * A cursor is the sort key of the last row of a page, as base64url of its JSON. It is opaque to clients and parsed like
 * any other input when it comes back.
 */
export function encodeCursor(key: readonly (string | number)[]): string {
  const bytes = new TextEncoder().encode(JSON.stringify(key))
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')
}

/** Reads the key within a cursor; null when it does not fit `schema`. It never throws. */
export function decodeCursor<T extends z.ZodType>(cursor: string, schema: T): z.output<T> | null {
  if (!/^[A-Za-z0-9_-]{1,1024}$/.test(cursor)) return null
  try {
    const binary = atob(cursor.replaceAll('-', '+').replaceAll('_', '/'))
    const text = new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(binary, (c) => c.charCodeAt(0)))
    const parsed = schema.safeParse(JSON.parse(text))
    return parsed.success ? parsed.data : null
  } catch {
    return null
  }
}
