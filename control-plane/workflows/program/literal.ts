import type { Expression, ObjectExpression, SpreadElement } from 'acorn'

// Values that a program writes out plainly: texts, numbers, true, false, null, lists and objects of them.

type Part = Expression | SpreadElement

export interface Literal {
  value: unknown
  /** The nodes of all parts by their path (`inputs.0.key`). */
  places: ReadonlyMap<string, Part>
}

/** The value of a plain literal, or the first part that is none. */
export function readLiteral(node: ObjectExpression): Literal | { misfit: Pick<Part, 'loc'> } {
  const places = new Map<string, Part>()
  try {
    return { value: valueOf(node, '', places), places }
  } catch (error) {
    if (error instanceof NotLiteral) return { misfit: error.node }
    throw error
  }
}

class NotLiteral extends Error {
  readonly node: Pick<Part, 'loc'>

  constructor(node: Pick<Part, 'loc'>) {
    super('no plain literal')
    this.node = node
  }
}

function valueOf(node: Part, path: string, places: Map<string, Part>): unknown {
  places.set(path, node)
  switch (node.type) {
    case 'Literal':
      if (node.regex != null || node.bigint != null) throw new NotLiteral(node)
      return node.value
    case 'TemplateLiteral':
      if (node.expressions.length > 0) throw new NotLiteral(node)
      return node.quasis[0]?.value.cooked ?? ''
    case 'UnaryExpression': {
      const { operator, argument } = node
      if (operator !== '-' || argument.type !== 'Literal' || typeof argument.value !== 'number')
        throw new NotLiteral(node)
      return -argument.value
    }
    case 'ArrayExpression':
      return node.elements.map((element, at) => {
        if (element === null) throw new NotLiteral(node)
        return valueOf(element, join(path, String(at)), places)
      })
    case 'ObjectExpression':
      return objectOf(node, path, places)
    default:
      throw new NotLiteral(node)
  }
}

function objectOf(node: ObjectExpression, path: string, places: Map<string, Part>): Record<string, unknown> {
  const value: Record<string, unknown> = {}
  for (const property of node.properties) {
    if (property.type !== 'Property' || property.computed || property.kind !== 'init') throw new NotLiteral(property)
    if (property.method || property.shorthand) throw new NotLiteral(property)
    const key = property.key.type === 'Identifier' ? property.key.name : nameOf(property.key)
    if (key === '__proto__') throw new NotLiteral(property)
    value[key] = valueOf(property.value, join(path, key), places)
  }
  return value
}

function nameOf(key: Expression | { type: 'PrivateIdentifier' }): string {
  if (key.type === 'Literal' && (typeof key.value === 'string' || typeof key.value === 'number'))
    return String(key.value)
  throw new NotLiteral(key as Expression)
}

const join = (path: string, key: string) => (path === '' ? key : `${path}.${key}`)
