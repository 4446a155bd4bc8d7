import type Koa from 'koa'
import { limitHeaders } from '../http/limits.ts'
import type { SignInDependencies } from './dependencies.ts'

// Limits signing in by address. Failures are counted tightly, so that nobody guesses; the rest only so far that no address
// fills the database: a whole office comes from one address, and signs in on a Monday morning.

const keyOf = (ctx: Koa.Context): string => `address:${ctx.ip}`

/** Counts a failure of the caller. Fails with 429 when there were too many. */
export async function countFailure(ctx: Koa.Context, { limiter }: SignInDependencies): Promise<void> {
  const state = await limiter.take('sign_in', keyOf(ctx))
  if (state !== null) ctx.set(limitHeaders(state))
}

/** Counted before the work, so that guesses sent at once all count, and given back where it does not fail by the caller. */
export async function countIfFailed(
  ctx: Koa.Context,
  deps: SignInDependencies,
  work: () => Promise<void>,
): Promise<void> {
  const { limiter } = deps
  await limiter.take('sign_in_any', keyOf(ctx))
  await countFailure(ctx, deps)
  let status = 500
  try {
    await work()
    status = ctx.status
  } catch (error) {
    status = (error as { status?: number }).status ?? 500
    throw error
  } finally {
    if (status < 400 || status >= 500) await limiter.giveBack('sign_in', keyOf(ctx))
  }
}
