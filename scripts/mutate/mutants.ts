import { parseAst } from 'rolldown/parseAst'

/** A small wrong change of a file, as a test should notice it. */
export interface Mutant {
  /** The line on which it begins, counted from 1. */
  line: number
  /** The text it takes out, by place, and what stands there instead. */
  start: number
  end: number
  text: string
  /** The change that it makes, in one line. */
  what: string
}

interface Node {
  type: string
  start: number
  end: number
  [key: string]: unknown
}

/** Negation and boundary of each comparison. */
const comparisons: Readonly<Record<string, readonly string[]>> = {
  '===': ['!=='],
  '!==': ['==='],
  '==': ['!='],
  '!=': ['=='],
  '<': ['<=', '>='],
  '<=': ['<', '>'],
  '>': ['>=', '<='],
  '>=': ['>', '<'],
}
const arithmetic: Readonly<Record<string, string>> = { '+': '-', '-': '+', '*': '/', '/': '*' }
const methods = new Map([
  ['some', 'every'],
  ['every', 'some'],
  ['min', 'max'],
  ['max', 'min'],
])
const functions = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'])

/** All mutants of a TypeScript file, in the order of their places: the same text has always the same. */
export function mutantsOf(source: string): Mutant[] {
  const found = new Map<string, Mutant>()
  const textOf = ({ start, end }: Node) => source.slice(start, end)
  const add = ({ start, end }: Pick<Node, 'start' | 'end'>, text: string, what?: string) => {
    const [before, after] = [inOneLine(source.slice(start, end)), inOneLine(text)]
    found.set(`${start} ${end} ${text}`, {
      line: source.slice(0, start).split('\n').length,
      start,
      end,
      text,
      what: what === undefined ? `${before} => ${after}` : `${what}: ${before}`,
    })
  }

  function visit(node: Node): void {
    const { type } = node
    if (type === 'ImportDeclaration') return
    // Of what only types know, nothing is left when the file runs.
    const inner = type.startsWith('TS') ? nodeAt(node, 'expression') : null
    if (type.startsWith('TS')) return inner === null ? undefined : visit(inner)
    const test = nodeAt(node, 'test')
    if (test !== null && type !== 'SwitchCase') negate(test)
    if (type === 'BinaryExpression') mutateBinary(node)
    if (type === 'LogicalExpression') mutateLogical(node)
    if (type === 'UnaryExpression' && node['operator'] === '!') add(node, `(${textOf(nodeAt(node, 'argument')!)})`)
    if (type === 'Literal') mutateLiteral(node)
    if (type === 'ExpressionStatement' && isEffect(nodeAt(node, 'expression')!)) add(node, ';', 'dropped')
    if (type === 'ThrowStatement') add(node, ';', 'dropped')
    if (type === 'CallExpression') mutateCall(node)
    if (type === 'ReturnStatement') mutateResult(nodeAt(node, 'argument'))
    if (functions.has(type)) mutateFunction(node)
    for (const child of childrenOf(node)) visit(child)
  }

  /** A comparison, a `!` and a join of conditions have mutants of their own. */
  function negate(condition: Node): void {
    if (condition.type === 'LogicalExpression' || isNot(condition) || isComparison(condition)) return
    add(condition, `!(${textOf(condition)})`)
  }

  function mutateBinary(node: Node): void {
    const operator = String(node['operator'])
    const sum = arithmetic[operator]
    for (const other of comparisons[operator] ?? (sum === undefined ? [] : [sum]))
      add(node, `(${textOf(nodeAt(node, 'left')!)}) ${other} (${textOf(nodeAt(node, 'right')!)})`)
  }

  function mutateLogical(node: Node): void {
    const [left, right] = [nodeAt(node, 'left')!, nodeAt(node, 'right')!]
    const [a, b] = [`(${textOf(left)})`, `(${textOf(right)})`]
    if (node['operator'] === '??') return add(node, a)
    for (const text of [`${a} ${node['operator'] === '&&' ? '||' : '&&'} ${b}`, a, b]) add(node, text)
    negate(left)
    if (isCondition(node)) negate(right)
  }

  function mutateLiteral(node: Node): void {
    const { value } = node
    const raw = textOf(node)
    if (typeof value === 'boolean') add(node, String(!value))
    if (typeof value === 'number') for (const text of [`(${raw} + 1)`, `(${raw} - 1)`]) add(node, text)
    if (typeof value === 'bigint') add(node, `(${raw} + 1n)`)
  }

  function mutateCall(node: Node): void {
    const name = nodeAt(nodeAt(node, 'callee') ?? node, 'property')
    const other = name === null ? undefined : methods.get(textOf(name))
    if (name !== null && other !== undefined) add(name, other)
  }

  /** Of `return`, and of an arrow without braces. */
  function mutateResult(result: Node | null): void {
    if (result === null || /^(?:undefined|null|true|false)$/.test(textOf(result))) return
    for (const text of isCondition(result) ? ['true', 'false'] : ['undefined']) add(result, text)
  }

  function mutateFunction(node: Node): void {
    const body = nodeAt(node, 'body')
    if (body === null) return
    if (body.type !== 'BlockStatement') return mutateResult(body)
    const statements = childrenOf(body)
    if (statements.length > 1 && !returnsValue(body)) add(body, '{}', 'returns at once')
  }

  for (const child of childrenOf(parseAst(source, { lang: 'ts' }) as unknown as Node)) visit(child)
  return [...found.values()].toSorted((a, b) => a.start - b.start || a.end - b.end || (a.text < b.text ? -1 : 1))
}

const inOneLine = (text: string): string => {
  const line = text.replaceAll(/\s+/g, ' ')
  return line.length > 90 ? `${line.slice(0, 87)}...` : line
}

const isNode = (value: unknown): value is Node => typeof (value as Node | null)?.type === 'string'

function nodeAt(node: Node, key: string): Node | null {
  const value = node[key]
  return isNode(value) ? value : null
}

const childrenOf = (node: Node): Node[] => Object.values(node).flat().filter(isNode)

const isNot = (node: Node): boolean => node.type === 'UnaryExpression' && node['operator'] === '!'
const isComparison = (node: Node): boolean =>
  node.type === 'BinaryExpression' && comparisons[String(node['operator'])] !== undefined

/** Whether it is surely true or false, and not a value of another kind. */
function isCondition(node: Node): boolean {
  if (node.type === 'LogicalExpression') return node['operator'] !== '??' && isCondition(nodeAt(node, 'right')!)
  return isNot(node) || isComparison(node) || (node.type === 'Literal' && typeof node['value'] === 'boolean')
}

/** A statement that changes something: a call, waited for or not, or an assignment. */
function isEffect(node: Node): boolean {
  const inner = nodeAt(node, node.type === 'ChainExpression' ? 'expression' : 'argument')
  if (['AwaitExpression', 'ChainExpression', 'UnaryExpression'].includes(node.type))
    return inner !== null && isEffect(inner)
  if (node.type === 'CallExpression') return nodeAt(node, 'callee')?.type !== 'Super'
  return node.type === 'AssignmentExpression' || node.type === 'UpdateExpression'
}

/** Whether a function with this body returns something; functions within it are others. */
function returnsValue(node: Node): boolean {
  if (node.type === 'ReturnStatement') return nodeAt(node, 'argument') !== null
  return childrenOf(node).some((child) => !functions.has(child.type) && returnsValue(child))
}
