import { contract } from '../../../shared/api/index.ts'
import type { AnyRoute } from '../../../shared/api/route.ts'

/** Routes as clients reach them: one entry for each path and alias. */
export interface Reach {
  route: AnyRoute
  path: string
  label: string
}

export const reaches: readonly Reach[] = contract.flatMap((route) =>
  [route.path, ...route.aliases].map((path) => ({ route, path, label: `${route.method} ${path}` })),
)

/** Routes that are written down to answer 501, whoever calls with whatever. */
export const isUnavailable = (route: AnyRoute): boolean => route.plainErrors.includes('plain.members_unavailable')

/** The path with the query of a request that has one. */
export const asked = (path: string, query: Readonly<Record<string, string>> = {}): string =>
  Object.keys(query).length === 0 ? path : `${path}?${new URLSearchParams(query).toString()}`

/** The path with its parameters filled in. Fails for a parameter this test knows nothing of, so that none is left out. */
export function fill(path: string, values: Readonly<Record<string, string>>): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = values[`${path.split('/')[1]}.${name}`] ?? values[name]
    if (value === undefined) throw new Error(`no value for {${name}} of ${path}`)
    return value
  })
}
