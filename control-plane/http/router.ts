import { Router } from '@koa/router'
import type { ImplementedRoute } from './implement.ts'
import type { Kernel } from './kernel.ts'
import { compile, type Compiled } from './mount.ts'

/** Finds a request's route; `allowed` returns the methods that its path has. */
export interface RouteTable {
  find(method: string, path: string): FoundRoute | null
  allowed(path: string): string[]
}

export interface FoundRoute {
  serve: Compiled
  /** Decoded; what cannot be decoded is as it came. */
  params: Readonly<Record<string, string>>
}

/**
 * One router for each first word and length of a path, so that a request is matched against a few routes and not against
 * all of the contract. The routers only find: what they find is called at once, since each route is one function and
 * composing a chain of it for each request costs several times what finding it does.
 */
export function createRouteTable(implemented: readonly ImplementedRoute[], kernel: Kernel): RouteTable {
  const routers = new Map<string, Router>()
  const served = new Map<unknown, Compiled>()
  for (const one of [...implemented].sort(fixedFirst)) {
    const { method, path, aliases, base } = one.route
    const serve = compile(one, kernel)
    for (const full of [path, ...aliases].map((each) => base + each)) {
      const router = routers.get(placeOf(full)) ?? new Router({ sensitive: true })
      routers.set(placeOf(full), router)
      served.set(
        router.register(full.replaceAll(/\{(\w+)\}/g, ':$1'), [method], () => undefined),
        serve,
      )
    }
  }
  return {
    find(method, path) {
      const layer = routers.get(placeOf(path))?.match(path, method).pathAndMethod[0]
      const serve = served.get(layer)
      if (layer === undefined || serve === undefined) return null
      return { serve, params: layer.params(path, layer.captures(path)) }
    },
    allowed(path) {
      const matched = routers.get(placeOf(path))?.match(path, 'NONE').path ?? []
      return [...new Set(matched.flatMap((layer) => layer.methods))].sort()
    },
  }
}

/** `agents` of `/api/v1/agents/...`, `openapi.json` of `/api/openapi.json`, with the number of words. */
function placeOf(path: string): string {
  const words = path.split('/')
  // A slash at the end makes no difference.
  const count = words.at(-1) === '' ? words.length - 1 : words.length
  return `${words[2] === 'v1' ? words[3] : words[2]} ${count}`
}

/** `/workspaces/stats` is looked at before `/workspaces/{workspaceId}`. */
function fixedFirst(a: ImplementedRoute, b: ImplementedRoute): number {
  const parameters = ({ route }: ImplementedRoute) => route.path.split('{').length
  return parameters(a) - parameters(b)
}
