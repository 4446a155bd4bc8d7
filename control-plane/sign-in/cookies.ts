import type Koa from 'koa'

/** Cookies of signing in. All are HttpOnly and SameSite=Lax, and Secure where the server is reached by https. */
export const cookies = {
  /** Ties a sign-in under way to this browser. */
  browser: 'svc_sign_in',
  /** Where to go on to after signing in. */
  next: 'svc_next',
} as const

export function readCookie(ctx: Koa.Context, name: string): string | null {
  for (const part of (ctx.req.headers.cookie ?? '').split(';')) {
    const at = part.indexOf('=')
    if (at > 0 && part.slice(0, at).trim() === name) return part.slice(at + 1).trim() || null
  }
  return null
}

export interface CookieOptions {
  isHttps: boolean
  /** 0 removes it. */
  maxAgeMs: number
  path?: string
}

export function setCookie(ctx: Koa.Context, cookie: { name: string; value: string }, options: CookieOptions): void {
  const { isHttps, maxAgeMs, path } = options
  const parts = [
    `${cookie.name}=${cookie.value}`,
    `Path=${path ?? '/'}`,
    `Max-Age=${Math.floor(maxAgeMs / 1000)}`,
    'HttpOnly',
    'SameSite=Lax',
    ...(isHttps ? ['Secure'] : []),
  ]
  ctx.append('Set-Cookie', parts.join('; '))
}
