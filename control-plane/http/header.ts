import type Koa from 'koa'

/** A header of the request; one that came several times is joined. */
export function headerOf(ctx: Koa.Context, name: string): string | undefined {
  const value = ctx.req.headers[name]
  return Array.isArray(value) ? value.join(', ') : value
}
