import { z } from 'zod'
import { commandLineOf } from '../../../shared/api/command-line.ts'
import { contract } from '../../../shared/api/index.ts'
import type { AnyRoute } from '../../../shared/api/route.ts'
import { maskValue } from '../../../shared/lib/secret-patterns.ts'
import type { ChangeResult, DecidedChange, PlatformChangeRow } from './store.ts'

export const routeOf = (routeId: string): AnyRoute | null => contract.find((route) => route.id === routeId) ?? null

/** The stored write as a person sees it before approving it. */
export function shownChange(change: Pick<PlatformChangeRow, 'routeId' | 'params' | 'body' | 'result' | 'source'>) {
  const route = routeOf(change.routeId)
  const masked = { params: maskValue(change.params) as Record<string, unknown>, body: maskValue(change.body) }
  return {
    method: route?.method ?? 'POST',
    path: route === null ? change.routeId : pathOf(route, change.params),
    body: masked.body,
    source: change.source,
    commands: route === null ? [] : route.commands.flatMap((spec) => commandLineOf(route, spec, masked) ?? []),
    result: change.result && { status: change.result.status, body: maskValue(change.result.body) },
  }
}

/** Says what became of a change, for the prompt of the agent that asked for it. */
export function outcomeText({ routeId, params, status, result }: DecidedChange): string {
  const route = routeOf(routeId)
  const what = route === null ? routeId : `${route.method} ${pathOf(route, params)}`
  if (status === 'approved') return `${what}: ${result === null ? 'approved' : resultText(result)}`
  return `${what}: ${status === 'expired' ? 'expired, since nobody decided it in time' : 'rejected'}`
}

const refusedBody = z.object({ error: z.object({ code: z.string() }) })
const madeBody = z.object({ id: z.string().max(100) })

/** Says what the route answered when the change was approved. */
export function resultText({ status, body }: ChangeResult): string {
  if (status < 400) {
    const made = madeBody.safeParse(body).data
    return `approved and done (${status}${made === undefined ? '' : `, ${made.id}`})`
  }
  const refused = refusedBody.safeParse(body).data
  return `approved, but refused when it was to be done (${status}${refused === undefined ? '' : `, ${refused.error.code}`})`
}

function pathOf(route: AnyRoute, params: PlatformChangeRow['params']): string {
  const path = route.path.replaceAll(/\{(\w+)\}/g, (whole, name: string) => {
    const value = params[name]
    return typeof value === 'string' ? encodeURIComponent(value) : whole
  })
  return route.base + path
}
