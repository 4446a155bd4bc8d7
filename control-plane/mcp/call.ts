import type { CallToolResult } from '@modelcontextprotocol/server'
import { ApiError, fail } from '../../shared/api/errors.ts'
import { mebibyte, type AnyRoute } from '../../shared/api/route.ts'
import type { AskOwn, OwnAnswer } from '../http/own-requests.ts'
import { callTool, findRoutes, findTool, keyArgument, toldOf, type RouteInput, type ToolSet } from './tools.ts'

// A call of a tool, which becomes one request to the API, and what its answer is for a model.

/** The words of a request to the endpoint about its caller, which each of its calls says again. */
export interface Calling {
  authorization: string
  userAgent: string
  /** Makes an idempotency key for a call that brings none. */
  newKey: () => string
  signal: AbortSignal
}

type Arguments = Readonly<Record<string, unknown>>

/** A larger answer would fill a model's context several times over. */
const mostAnswerBytes = mebibyte

/** null: there is no such tool. */
export async function callOf(
  { name, args }: { name: string; args: Arguments },
  { tools, ask, calling }: { tools: ToolSet; ask: AskOwn; calling: Calling },
): Promise<CallToolResult | null> {
  if (name === findTool) return found(tools, args)
  const named = tools.named.get(name)
  if (named === undefined && name !== callTool) return null
  try {
    const [route, given] = named === undefined ? chosen(tools, args) : [named, args]
    return resultOf(
      route,
      await ask({
        ...requestOf(route, given, { ...calling, isSpread: tools.inputOf(route).isSpread }),
        mostBytes: mostAnswerBytes,
        signal: calling.signal,
      }),
    )
  } catch (error) {
    if (error instanceof ApiError) return refused(error)
    throw error
  }
}

function found(tools: ToolSet, { words }: Arguments): CallToolResult {
  if (typeof words !== 'string' || words.length > 200) return refused(misfit('words', 'It must be a text.'))
  const routes = findRoutes(tools, words)
  if (routes.length === 0) return told('No route has these words. Try others, or fewer.')
  return told(JSON.stringify(routes.map((route) => toldOf(route, tools.inputOf(route)))))
}

function chosen({ callable }: ToolSet, { route: id, arguments: given = {} }: Arguments): [AnyRoute, Arguments] {
  const route = typeof id === 'string' ? callable.get(id) : undefined
  if (route === undefined)
    return fail('route_not_found', {
      param: 'route',
      message: `There is no such route here; ${findTool} tells the routes.`,
    })
  if (!isObject(given)) throw misfit('arguments', 'It must be an object.')
  return [route, given]
}

function requestOf(
  route: AnyRoute,
  args: Arguments,
  { authorization, userAgent, newKey, isSpread }: Calling & Pick<RouteInput, 'isSpread'>,
) {
  const isRead = route.method === 'GET'
  const { [keyArgument]: key, ...given } = args
  const rest = new Map(Object.entries(given))
  const path = route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => segmentOf(name, taken(rest, name)))
  const query = new URLSearchParams()
  for (const name of isRead ? [...rest.keys()] : Object.keys(route.query.shape))
    for (const value of textsOf(name, taken(rest, name))) query.append(name, value)
  const body = isRead || route.body.def.type === 'undefined' ? unexpected(rest) : bodyOf(route, rest, isSpread)
  return {
    method: route.method,
    path: `${route.base}${path}${query.size === 0 ? '' : `?${query.toString()}`}`,
    headers: {
      authorization,
      accept: 'application/json',
      'user-agent': userAgent,
      ...(route.idempotency === 'none' ? {} : { 'idempotency-key': keyOf(key ?? newKey()) }),
      ...(body === null ? {} : { 'content-type': 'application/json' }),
    },
    body,
  }
}

function taken(rest: Map<string, unknown>, name: string): unknown {
  const value = rest.get(name)
  rest.delete(name)
  return value
}

/** An empty value, `.` and `..` would call another route. */
function segmentOf(name: string, value: unknown): string {
  if (typeof value !== 'string' || value === '' || value === '.' || value === '..')
    throw misfit(name, 'It must be a text that names something.')
  return encodeURIComponent(value)
}

function textsOf(name: string, value: unknown): string[] {
  const values: unknown[] = value === undefined || value === null ? [] : Array.isArray(value) ? value : [value]
  return values.map((one) => {
    if (typeof one === 'string' || typeof one === 'number' || typeof one === 'boolean') return String(one)
    throw misfit(name, 'It must be a text, a number, true or false, or a list of them.')
  })
}

function unexpected(rest: ReadonlyMap<string, unknown>): null {
  const [name] = rest.keys()
  if (name !== undefined) throw misfit(name, 'There is no such argument.')
  return null
}

function bodyOf(route: AnyRoute, rest: ReadonlyMap<string, unknown>, isSpread: boolean): Buffer | null {
  const isLeftOut = isSpread ? rest.size === 0 && route.body.safeParse(undefined).success : !rest.has('body')
  if (isLeftOut) return null
  return Buffer.from(JSON.stringify(isSpread ? Object.fromEntries(rest) : rest.get('body')))
}

/** Fails with `validation_error` for a key that no header can hold. */
function keyOf(key: unknown): string {
  if (typeof key === 'string' && /^[!-~]{1,255}$/.test(key)) return key
  throw misfit(keyArgument, 'It must be 1 to 255 letters, digits or signs, without blanks.')
}

function resultOf(route: AnyRoute, { status, text, isTooLarge }: OwnAnswer): CallToolResult {
  if (isTooLarge)
    return told(
      `The answer has more than ${mostAnswerBytes / mebibyte} MiB. Ask for less of it (limit, filters), or read it with \`svc\` or the API.`,
      true,
    )
  if (status >= 400) return told(text, true)
  if (status === 202) return told(`${text}\n\nA person decides about this. ${approvalHint}`)
  return told(status === 204 || text === '' ? 'Done.' : text)
}

const approvalHint = 'Nothing is changed until they do; approval_get says what they decided.'

const refused = (error: ApiError): CallToolResult => told(JSON.stringify(error.toEnvelope('')), true)

const told = (text: string, isError = false): CallToolResult => ({
  content: [{ type: 'text', text }],
  ...(isError && { isError }),
})

const misfit = (param: string, message: string) => new ApiError('validation_error', { param, message })

const isObject = (value: unknown): value is Arguments =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
