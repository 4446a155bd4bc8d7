import type Koa from 'koa'
import { cookieName, cookieOf } from '../http/cookie.ts'

/** Cookies of signing in. All are HttpOnly and SameSite=Lax, and Secure if the server is reached by https. */
export const cookies = {
  /** Ties an unfinished sign-in to this browser. */
  browser: 'svc_sign_in',
  /** The page to open after signing in. */
  next: 'svc_next',
} as const

export function readCookie(ctx: Koa.Context, { isHttps }: { isHttps: boolean }, name: string): string | null {
  return cookieOf(ctx.req, cookieName(name, isHttps))
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
    `${cookieName(cookie.name, isHttps)}=${cookie.value}`,
    // The prefix allows no other path.
    `Path=${isHttps ? '/' : (path ?? '/')}`,
    `Max-Age=${Math.floor(maxAgeMs / 1000)}`,
    'HttpOnly',
    'SameSite=Lax',
    ...(isHttps ? ['Secure'] : []),
  ]
  ctx.append('Set-Cookie', parts.join('; '))
}
