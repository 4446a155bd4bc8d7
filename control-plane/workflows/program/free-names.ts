import type { AnyNode, Identifier, Node, Pattern, Program } from 'acorn'
import { ancestor, base as walkBase, simple } from 'acorn-walk'

// Finds names that a program uses and does not declare.

/** The first use of one of these names as a free variable; null when there is none. */
export function firstFree(program: Program, names: ReadonlySet<string>): Identifier | null {
  const declared = new Map<Node, ReadonlySet<string>>()
  const namesOf = (scope: Node) => {
    const known = declared.get(scope)
    if (known !== undefined) return known
    const found = declaredIn(scope)
    declared.set(scope, found)
    return found
  }
  let first: Identifier | null = null
  const look = (node: Node, _: unknown, ancestors: Node[]) => {
    const identifier = node as Identifier
    if (!names.has(identifier.name) || (first !== null && first.start <= identifier.start)) return
    if (!ancestors.some((scope) => namesOf(scope).has(identifier.name))) first = identifier
  }
  ancestor(program, { Identifier: look, VariablePattern: look } as Parameters<typeof ancestor>[1])
  return first
}

const none: ReadonlySet<string> = new Set()

/** The names that this node declares for what is within it. */
function declaredIn(scope: Node): ReadonlySet<string> {
  const node = scope as AnyNode
  switch (node.type) {
    case 'Program':
      return new Set([...hoisted(node), ...ofBlock(node.body)])
    case 'FunctionDeclaration':
    case 'FunctionExpression':
    case 'ArrowFunctionExpression':
      return new Set([
        ...(node.id ? [node.id.name] : []),
        ...node.params.flatMap(namesIn),
        ...hoisted(node.body),
        ...(node.body.type === 'BlockStatement' ? ofBlock(node.body.body) : []),
      ])
    case 'ClassDeclaration':
    case 'ClassExpression':
      return node.id ? new Set([node.id.name]) : none
    case 'BlockStatement':
    case 'StaticBlock':
      return new Set(ofBlock(node.body))
    case 'SwitchStatement':
      return new Set(node.cases.flatMap(({ consequent }) => ofBlock(consequent)))
    case 'ForStatement':
      return new Set(node.init ? ofBlock([node.init]) : [])
    case 'ForInStatement':
    case 'ForOfStatement':
      return new Set(ofBlock([node.left]))
    case 'CatchClause':
      return new Set(node.param ? namesIn(node.param) : [])
    default:
      return none
  }
}

/** Names of the declarations that stand directly in this list. */
function ofBlock(statements: readonly Node[]): string[] {
  return statements.flatMap((each) => {
    const node = each as AnyNode
    if (node.type === 'ExportNamedDeclaration') return node.declaration ? ofBlock([node.declaration]) : []
    if (node.type === 'VariableDeclaration') return node.declarations.flatMap(({ id }) => namesIn(id))
    if (node.type === 'FunctionDeclaration' || node.type === 'ClassDeclaration') return node.id ? [node.id.name] : []
    return []
  })
}

/** Names that `var` declares anywhere within, for the whole function. */
function hoisted(within: Node): string[] {
  const found: string[] = []
  simple(
    within,
    {
      VariableDeclaration(node) {
        if (node.kind === 'var') found.push(...node.declarations.flatMap(({ id }) => namesIn(id)))
      },
    },
    { ...walkBase, Function: () => undefined, Class: () => undefined },
  )
  return found
}

function namesIn(pattern: Pattern): string[] {
  switch (pattern.type) {
    case 'Identifier':
      return [pattern.name]
    case 'ObjectPattern':
      return pattern.properties.flatMap((each) => namesIn(each.type === 'Property' ? each.value : each.argument))
    case 'ArrayPattern':
      return pattern.elements.flatMap((each) => (each === null ? [] : namesIn(each)))
    case 'AssignmentPattern':
      return namesIn(pattern.left)
    case 'RestElement':
      return namesIn(pattern.argument)
    default:
      return []
  }
}
