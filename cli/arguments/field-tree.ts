import { usageError } from '../errors/cli-error.ts'

/** A body made of `key=value` fields, where `a[b]` is a key within a, and `a[]` appends an item to a. */
export interface FieldTree {
  [key: string]: unknown
}

export function addField(tree: FieldTree, key: string, value: unknown): void {
  const match = /^([^[\]]+)((?:\[[^[\]]*\])*)$/.exec(key)
  if (match === null) throw usageError(`\`${key}\` is not a key. For example: name, labels[], config[model]`)
  const path = [match[1]!, ...[...match[2]!.matchAll(/\[([^[\]]*)\]/g)].map((part) => part[1]!)]
  if (path.includes('__proto__')) throw usageError('`__proto__` cannot be a key.')
  let at: FieldTree | unknown[] = tree
  for (const [place, name] of path.entries()) {
    const isLast = place === path.length - 1
    const next = isLast ? value : path[place + 1] === '' ? [] : {}
    at = step({ at, name, next, isLast, key }) as FieldTree | unknown[]
  }
}

interface Step {
  at: FieldTree | unknown[]
  name: string
  next: unknown
  isLast: boolean
  key: string
}

function step({ at, name, next, isLast, key }: Step): unknown {
  if (Array.isArray(at)) {
    if (name !== '') throw usageError(`\`${key}\`: a list has no key \`${name}\`.`)
    at.push(next)
    return next
  }
  if (name === '') throw usageError(`\`${key}\`: an object needs a key, not \`[]\`.`)
  const there = Object.hasOwn(at, name) ? at[name] : undefined
  const isSameKind = typeof there === 'object' && there !== null && Array.isArray(there) === Array.isArray(next)
  if (!isLast && isSameKind) return there
  if (there !== undefined && !isLast) throw usageError(`\`${key}\` is given as a value and as a list or object.`)
  at[name] = next
  return next
}
