import type { CommandFlag, CommandSpec, FlagKind, FlagOverride } from './command.ts'
import type { AnyRoute } from './route.ts'
import { referenceAt } from './accepted-form.ts'
import { schemaAt, shapeOf, type ValueShape } from './schema-shape.ts'

export const kebab = (key: string) => key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

/** Returns the flags of a command, those of the schemas and the overrides, in the order of the schemas. */
export function flagsOf(route: AnyRoute, spec: CommandSpec): CommandFlag[] {
  const flags: CommandFlag[] = []
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
      if (key === 'cursor' && 'after' in (shape as object)) continue
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

function flagOf(route: AnyRoute, name: string, override: FlagOverride): CommandFlag {
  const { target = null, required, ...others } = override
  const shape = target === null ? null : shapeAt(route, target)
  const isRequired = others.fallback === undefined && (required ?? (target !== null && isNeeded(route, target)))
  return {
    name,
    target,
    kind: kindFor(shape),
    description: shape?.description ?? '',
    ...(shape?.kind === 'array' ? { repeatable: true } : {}),
    ...(isRequired ? { required: true } : {}),
    ...(shape?.choices ? { choices: shape.choices } : {}),
    ...(target === 'query.limit' && shape?.max != null ? { perPage: shape.max } : {}),
    ...(target === 'query.startingAfter' && !isNamed(route, 'after') ? { aliases: ['after'] } : {}),
    ...(shape?.nullable ? { nullWord: nullWordFor(shape) } : {}),
    ...referredBy(route, target),
    ...others,
  }
}

/** Lists that page by ids take the name of all other lists, too, where they have no other use for it. */
const isNamed = (route: AnyRoute, key: string) => key in ((route.query as { shape?: object }).shape ?? {})

function referredBy(route: AnyRoute, target: string | null): Pick<CommandFlag, 'refers'> {
  const [part, ...path] = (target ?? '').split('.') as ['params' | 'query' | 'body', ...string[]]
  const schema = target === null ? null : schemaAt(route[part], path)
  const reference = schema === null ? null : referenceAt(schema)
  return reference === null ? {} : { refers: reference.kind }
}

function shapeAt(route: AnyRoute, target: string): ValueShape {
  const [part, ...path] = target.split('.') as ['params' | 'query' | 'body', ...string[]]
  const schema = schemaAt(route[part], path)
  if (schema === null) throw new Error(`${route.id}: no ${target} for a flag`)
  return shapeOf(schema)
}

/** Tells whether the value must be given: it and everything around it are required. */
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
