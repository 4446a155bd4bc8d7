import type { ImplementedRoute } from './implement.ts'
import type { Kernel } from './kernel.ts'
import { compile, type Compiled } from './mount.ts'

/** Finds a request's route; `allowed` gives the methods that its path has. */
export interface RouteTable {
  find(method: string, path: string): FoundRoute | null
  allowed(path: string): string[]
}

export interface FoundRoute {
  serve: Compiled
  /** Decoded; what cannot be decoded is as it came. */
  params: Readonly<Record<string, string>>
}

interface Pattern {
  methods: readonly string[]
  /** Between the slashes; null where a parameter stands. */
  words: readonly (string | null)[]
  names: readonly string[]
  serve: Compiled
}

/**
 * A request is matched against the few routes that have the first word of its path and as many words, those with fewer
 * parameters first. A slash at the end makes no difference, capital letters do.
 */
export function createRouteTable(implemented: readonly ImplementedRoute[], kernel: Kernel): RouteTable {
  const patterns = new Map<string, Pattern[][]>()
  for (const one of [...implemented].sort(fixedFirst)) {
    const { method, path, aliases, base } = one.route
    const methods = method === 'GET' ? ['GET', 'HEAD'] : [method]
    const serve = compile(one, kernel)
    for (const words of [path, ...aliases].map((each) => (base + each).split('/'))) {
      const bySize = patterns.get(firstOf(words)) ?? []
      patterns.set(firstOf(words), bySize)
      ;(bySize[words.length] ??= []).push({ methods, serve, ...parsed(words) })
    }
  }
  const candidates = (words: readonly string[]) => patterns.get(firstOf(words))?.[words.length] ?? []
  return {
    find(method, path) {
      const words = wordsOf(path)
      for (const pattern of candidates(words))
        if (pattern.methods.includes(method) && fits(pattern, words))
          return { serve: pattern.serve, params: paramsOf(pattern, words) }
      return null
    },
    allowed(path) {
      const words = wordsOf(path)
      const fitting = candidates(words).filter((pattern) => fits(pattern, words))
      return [...new Set(fitting.flatMap((pattern) => pattern.methods))].sort()
    },
  }
}

function parsed(words: readonly string[]): Pick<Pattern, 'words' | 'names'> {
  const names = words.filter((word) => word.startsWith('{')).map((word) => word.slice(1, -1))
  return { names, words: words.map((word) => (word.startsWith('{') ? null : word)) }
}

function wordsOf(path: string): string[] {
  const words = path.split('/')
  if (words.length > 2 && words.at(-1) === '') words.pop()
  return words
}

/** `agents` of `/api/v1/agents/...`, `openapi.json` of `/api/openapi.json`. */
const firstOf = (words: readonly string[]): string => (words[2] === 'v1' ? words[3] : words[2]) ?? ''

const fits = ({ words }: Pattern, given: readonly string[]): boolean =>
  words.every((word, index) => (word === null ? given[index] !== '' : word === given[index]))

function paramsOf({ words, names }: Pattern, given: readonly string[]): Record<string, string> {
  const params: Record<string, string> = {}
  let count = 0
  for (let index = 0; index < words.length; index++)
    if (words[index] === null) params[names[count++]!] = decoded(given[index]!)
  return params
}

function decoded(text: string): string {
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** `/workspaces/stats` is looked at before `/workspaces/{workspaceId}`. */
function fixedFirst(a: ImplementedRoute, b: ImplementedRoute): number {
  const parameters = ({ route }: ImplementedRoute) => route.path.split('{').length
  return parameters(a) - parameters(b)
}
