import { Router } from '@koa/router'
import type Koa from 'koa'
import type { ImplementedRoute } from './implement.ts'
import type { Kernel } from './kernel.ts'
import { compile } from './mount.ts'

/** Finds a request's route: `handle` says false when there is none, `allowed` the methods its path has. */
export interface RouteTable {
  handle(ctx: Koa.Context): Promise<boolean>
  allowed(path: string): string[]
}

/**
 * One router for each first word of a path, so that a request is matched against the ten or so routes of its resource and
 * not against all of the contract.
 */
export function createRouteTable(implemented: readonly ImplementedRoute[], kernel: Kernel): RouteTable {
  const routers = new Map<string, Router>()
  for (const one of [...implemented].sort(fixedFirst)) {
    const compiled = compile(one, kernel)
    for (const path of [one.route.path, ...one.route.aliases]) {
      const full = one.route.base + path
      const router = routers.get(wordOf(full)) ?? new Router({ sensitive: true })
      routers.set(wordOf(full), router)
      router.register(full.replaceAll(/\{(\w+)\}/g, ':$1'), [one.route.method], (ctx) => compiled(ctx))
    }
  }
  const dispatchers = new Map([...routers].map(([word, router]) => [word, router.routes()] as const))
  return {
    async handle(ctx) {
      const dispatch = dispatchers.get(wordOf(ctx.path))
      if (dispatch === undefined) return false
      let isHandled = true
      await dispatch(ctx as never, () => {
        isHandled = false
        return Promise.resolve()
      })
      return isHandled
    },
    allowed(path) {
      const matched = routers.get(wordOf(path))?.match(path, 'NONE').path ?? []
      return [...new Set(matched.flatMap((layer) => layer.methods))].sort()
    },
  }
}

/** `agents` of `/api/v1/agents/...`, `openapi.json` of `/api/openapi.json`. */
function wordOf(path: string): string {
  const words = path.split('/', 4)
  return (words[2] === 'v1' ? words[3] : words[2]) ?? ''
}

/** `/workspaces/stats` is looked at before `/workspaces/{workspaceId}`. */
function fixedFirst(a: ImplementedRoute, b: ImplementedRoute): number {
  const parameters = ({ route }: ImplementedRoute) => route.path.split('{').length
  return parameters(a) - parameters(b)
}
