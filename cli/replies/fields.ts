/**
 * Reads single fields of a reply. The server is trusted to follow the contract, but a proxy may answer in its place, so
 * a field of the wrong type reads as null. (Parsing by the contract's schemas would triple a call's time.)
 */
export function fieldAt(value: unknown, ...path: readonly (string | number)[]): unknown {
  let at = value
  for (const key of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return undefined
    at = (at as Record<string | number, unknown>)[key]
  }
  return at
}

export function textAt(value: unknown, ...path: readonly (string | number)[]): string | null {
  const found = fieldAt(value, ...path)
  return typeof found === 'string' ? found : null
}

export function listAt(value: unknown, ...path: readonly (string | number)[]): readonly unknown[] {
  const found = fieldAt(value, ...path)
  return Array.isArray(found) ? found : []
}
