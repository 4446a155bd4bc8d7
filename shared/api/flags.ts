import type { CommandSpec, Fallback, FlagKind, FlagOverride } from './command.ts'
import type { AnyRoute } from './route.ts'
import { schemaAt, shapeOf, type ValueShape } from './schema-shape.ts'

export interface Flag {
  /** Without the dashes. */
  name: string
  target: string | null
  kind: FlagKind
  repeatable: boolean
  required: boolean
  default: unknown
  hidden: boolean
  dropped: boolean
  aliases: readonly string[]
  choices: readonly string[] | null
  /** The word for which null is sent. */
  nullWord: string | null
  description: string
  fallback: Fallback | null
  bare: unknown
}

export const kebab = (key: string) => key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

/** All flags of a command, those of the schemas and the overrides, in the order of the schemas. */
export function flagsOf(route: AnyRoute, spec: CommandSpec): Flag[] {
  const flags: Flag[] = []
  const overrides = spec.flags ?? {}
  const taken = new Set([
    ...(spec.positionals ?? []).map((positional) => positional.target),
    ...Object.values(overrides).flatMap((override) => override?.target ?? []),
  ])
  for (const part of ['query', 'body'] as const) {
    const shape: unknown = (route[part] as { shape?: unknown }).shape
    for (const key of shape === undefined ? [] : Object.keys(shape as object)) {
      const target = `${part}.${key}`
      const name = kebab(key)
      if (name in overrides || taken.has(target)) continue
      if (spec.batch === undefined && key === 'ids') continue
      const isGroup = shapeOf(schemaAt(route[part], [key])!).kind === 'object'
      if (!isGroup) flags.push(flagOf(route, name, { target }))
    }
  }
  for (const [name, override] of Object.entries(overrides)) {
    if (override === null) continue
    flags.push(flagOf(route, name, { target: targetFor(route, name), ...override }))
  }
  return flags
}

/** The query or body key whose kebab-case is `name`, for an override that does not say its target. */
function targetFor(route: AnyRoute, name: string): string | null {
  for (const part of ['query', 'body'] as const) {
    const shape = (route[part] as { shape?: Record<string, unknown> }).shape ?? {}
    const key = Object.keys(shape).find((candidate) => kebab(candidate) === name)
    if (key !== undefined) return `${part}.${key}`
  }
  return null
}

function flagOf(route: AnyRoute, name: string, override: FlagOverride): Flag {
  const target = override.target ?? null
  const shape = target === null ? null : shapeAt(route, target)
  const nullWord = override.nullWord ?? (shape?.nullable ? nullWordFor(shape) : null)
  return {
    name,
    target,
    kind: override.kind ?? kindFor(shape),
    repeatable: override.repeatable ?? shape?.kind === 'array',
    required: override.required ?? (target !== null && isNeeded(route, target)),
    default: override.default,
    hidden: override.hidden ?? false,
    dropped: override.dropped ?? false,
    aliases: override.aliases ?? [],
    choices: shape?.choices ?? null,
    nullWord,
    description: override.description ?? shape?.description ?? '',
    fallback: override.fallback ?? null,
    bare: override.bare,
  }
}

function shapeAt(route: AnyRoute, target: string): ValueShape {
  const [part, ...path] = target.split('.') as ['params' | 'query' | 'body', ...string[]]
  const schema = schemaAt(route[part], path)
  if (schema === null) throw new Error(`${route.id}: no ${target} for a flag`)
  return shapeOf(schema)
}

/** Whether the value must be given: it and everything around it are required. */
function isNeeded(route: AnyRoute, target: string): boolean {
  const [part, ...path] = target.split('.')
  return path.every((_key, at) => {
    const shape = shapeAt(route, [part, ...path.slice(0, at + 1)].join('.'))
    const isLast = at === path.length - 1
    return !shape.optional && shape.default === undefined && (isLast || !shape.nullable)
  })
}

function kindFor(shape: ValueShape | null): FlagKind {
  const kind = shape?.kind === 'array' ? shape.item?.kind : shape?.kind
  return kind === 'string' || kind === 'number' || kind === 'boolean' ? kind : shape === null ? 'string' : 'json'
}

/** `none` clears a value, except where `none` is a value. */
const nullWordFor = (shape: ValueShape) => (shape.choices?.includes('none') ? 'inherit' : 'none')
