import type { Tool } from '@modelcontextprotocol/server'
import { z } from 'zod'
import type { AnyRoute } from '../../shared/api/route.ts'

/**
 * The routes of the contract as tools: about 25 under names of their own, the rest by two that find and call them. The list is the same for all
 * callers and keeps its order, so that a model's cache of its prompt holds; what a caller may not do is refused when it is called.
 */
export interface ToolSet {
  /** The tools in their order. */
  list: readonly Tool[]
  /** The routes with tools of their own, by the names of these. */
  named: ReadonlyMap<string, AnyRoute>
  /** The routes that can be called, by id; those with names, too. */
  callable: ReadonlyMap<string, AnyRoute>
  /** Returns what a call of the route takes; it is worked out when it is first asked for. */
  inputOf(route: AnyRoute): RouteInput
}

export interface RouteInput {
  schema: ObjectSchema
  /** The keys of the body stand beside the others; else the body stands under `body`. */
  isSpread: boolean
}

type ObjectSchema = Tool['inputSchema']

/** The routes with names of their own by their ids, in the order of the list. */
const namedRoutes = [
  'workspaces.current',
  'agents.list',
  'agents.get',
  'agents.runs.start',
  'runs.list',
  'runs.get',
  'runs.events.list',
  'runs.cancel',
  'tasks.list',
  'tasks.get',
  'tasks.create',
  'tasks.update',
  'tasks.assign',
  'tasks.comments.list',
  'tasks.comments.create',
  'conversations.list',
  'conversations.messages.list',
  'conversations.messages.create',
  'wiki.pages.list',
  'wiki.pages.get',
  'wiki.pages.create',
  'learnings.create',
  'files.list',
  'approvals.list',
  'approvals.get',
  'questions.list',
] as const

/** The name of the argument by which a write is made once, however often it is sent. */
export const keyArgument = 'idempotencyKey'

export const findTool = 'find_routes'
export const callTool = 'call_route'

/**
 * Returns whether a route can be called as a tool: it takes and answers JSON as a whole, and asks who calls. A route that answers a secret
 * is left out, since a model's context is no place for it.
 */
const isCallable = ({ base, callers, stream, body, isSecret }: AnyRoute): boolean =>
  base === '/api/v1' && callers !== 'none' && stream !== 'text' && body.def.type !== 'custom' && !isSecret

export function toolsOf(contract: readonly AnyRoute[]): ToolSet {
  const callable = new Map(contract.filter(isCallable).map((route) => [route.id, route] as const))
  const named = new Map<string, AnyRoute>()
  for (const id of namedRoutes) {
    const route = callable.get(id)
    if (route === undefined) throw new Error(`no route ${id} for a tool`)
    named.set(nameOf(route), route)
  }
  const inputs = new Map<string, RouteInput>()
  const inputOf = (route: AnyRoute): RouteInput => {
    const known = inputs.get(route.id) ?? inputFor(route)
    inputs.set(route.id, known)
    return known
  }
  const list = [...named].map(([name, route]) => toolOf(name, route, inputOf(route)))
  return { list: [...list, finding, calling], named, callable, inputOf }
}

/** `task_comment_add` of `svc task comment add`. */
function nameOf({ id, commands: [command] }: AnyRoute): string {
  return (command?.command ?? id).replaceAll(/[^A-Za-z0-9]+/g, '_')
}

function toolOf(name: string, route: AnyRoute, input: RouteInput): Tool {
  return {
    name,
    title: route.summary,
    description: describe(route),
    inputSchema: input.schema,
    annotations: {
      readOnlyHint: route.method === 'GET',
      destructiveHint: route.method === 'DELETE',
      idempotentHint: route.method === 'GET' || route.method === 'PUT' || route.method === 'DELETE',
      openWorldHint: false,
    },
  }
}

/** Describes a route in words for a model. */
function describe({ summary, description, callers }: AnyRoute): string {
  const sentences = [`${summary}.`, description ?? '']
  if (callers !== 'none' && typeof callers.agent === 'object') sentences.push('People alone may do this.')
  if (callers !== 'none' && callers.agent === 'platform_change')
    sentences.push(
      'When an agent calls it, the answer is an approval (202): a person decides, and the change is made then.',
    )
  return sentences.filter(Boolean).join(' ')
}

/** The parameters, the query and the keys of the body, beside one another. */
function inputFor(route: AnyRoute): RouteInput {
  const body = route.body.def.type === 'undefined' ? nothing : jsonSchemaOf(route.body)
  const isSpread = body.properties !== undefined
  const parts = [jsonSchemaOf(route.params), jsonSchemaOf(route.query), isSpread ? body : underBody(body)]
  const keyed = route.idempotency === 'none' ? {} : { [keyArgument]: keySchema }
  const required = parts.flatMap((part) => part.required ?? [])
  const definitions = Object.assign({}, ...parts.map((part) => part.$defs ?? {})) as Record<string, unknown>
  const schema: ObjectSchema = {
    type: 'object',
    properties: { ...(Object.assign({}, ...parts.map((part) => part.properties)) as object), ...keyed },
    ...(required.length === 0 ? {} : { required }),
    ...(Object.keys(definitions).length === 0 ? {} : { $defs: definitions }),
  }
  return { schema, isSpread }
}

const keySchema = {
  type: 'string',
  minLength: 1,
  maxLength: 255,
  description:
    'A text of your choice. A call that is sent again with its key is made once. Default: each call is one of its own.',
}

const nothing: ObjectSchema = { type: 'object', properties: {} }

const underBody = (body: ObjectSchema): ObjectSchema => ({
  type: 'object',
  properties: { body: body as NonNullable<ObjectSchema['properties']>[string] },
})

/** A schema with a name of its own is given as a reference to its definition, which is taken in its place. */
function jsonSchemaOf(schema: z.ZodType): ObjectSchema {
  const { $schema: _, ...whole } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })
  const { $ref, $defs = {}, ...rest } = whole
  const name = $ref?.replace('#/$defs/', '')
  if (name === undefined) return whole as ObjectSchema
  const { [name]: named, ...others } = $defs
  return { ...named, ...rest, ...(Object.keys(others).length === 0 ? {} : { $defs: others }) } as ObjectSchema
}

/** The number of routes that are found at once. */
export const mostFound = 8

const finding: Tool = {
  name: findTool,
  title: 'Find what else can be called',
  description: `Finds routes of the API by words, such as "automation pause". Each is told with its id and the arguments it takes; ${callTool} calls it. At most ${mostFound} are told.`,
  inputSchema: {
    type: 'object',
    properties: { words: { type: 'string', minLength: 1, maxLength: 200, description: 'What you want to do.' } },
    required: ['words'],
  },
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
}

const calling: Tool = {
  name: callTool,
  title: 'Call a route of the API',
  description: `Calls a route that ${findTool} told, by its id, with the arguments that it takes.`,
  inputSchema: {
    type: 'object',
    properties: {
      route: { type: 'string', maxLength: 200, description: 'The id of the route, such as `automations.pause`.' },
      arguments: { type: 'object', description: 'As the route takes them.' },
    },
    required: ['route'],
  },
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: false },
}

/** The routes that have most of the words in their id, summary and command, the best first. */
export function findRoutes({ callable }: ToolSet, words: string): AnyRoute[] {
  const wanted = wordsOf(words)
  const scored = [...callable.values()].map((route) => {
    const [id, about] = [
      wordsOf(route.id),
      wordsOf(`${route.summary} ${route.commands.map((each) => each.command).join(' ')}`),
    ]
    const score = wanted.reduce((sum, word) => sum + (has(id, word) ? 3 : 0) + (has(about, word) ? 2 : 0), 0)
    return { route, score }
  })
  return scored
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score || (a.route.id < b.route.id ? -1 : 1))
    .slice(0, mostFound)
    .map(({ route }) => route)
}

const wordsOf = (text: string): string[] =>
  text
    .replaceAll(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word.length > 1)
    .map((word) => word.replace(/s$/, ''))

const has = (words: readonly string[], wanted: string): boolean => words.some((word) => word === wanted)

/** Describes a route for the answer of `find_routes`. */
export function toldOf(route: AnyRoute, { schema }: RouteInput): object {
  return { route: route.id, about: describe(route), arguments: schema }
}
