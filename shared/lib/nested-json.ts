/**
 * Returns the value of a JSON text. Throws where there is none, and where it is nested deeper than `maxDepth`: the parser takes any
 * depth, and `JSON.stringify` and others would overflow the stack.
 */
export function parseNested(text: string, maxDepth: number): unknown {
  const value: unknown = JSON.parse(text)
  if (text.length > 2 * maxDepth && isNestedTooDeep(value, maxDepth))
    throw new RangeError('The JSON is nested too deep.')
  return value
}

function isNestedTooDeep(value: unknown, maxDepth: number): boolean {
  let level = [value].filter(isContainer)
  for (let depth = 0; level.length > 0; depth++) {
    if (depth >= maxDepth) return true
    const next: object[] = []
    for (const each of level)
      for (const inner of Array.isArray(each) ? each : Object.values(each)) if (isContainer(inner)) next.push(inner)
    level = next
  }
  return false
}

const isContainer = (value: unknown): value is object => typeof value === 'object' && value !== null
