import type { Server } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type * as library from '@modelcontextprotocol/server'
import type { McpHttpHandler, McpRequestContext, McpServer } from '@modelcontextprotocol/server'
import type * as extension from '@modelcontextprotocol/server/ext/skills'
import type Koa from 'koa'
import { fail } from '../../shared/api/errors.ts'
import { mebibyte, type AnyRoute } from '../../shared/api/route.ts'
import { version } from '../../shared/lib/version.ts'
import { parseJsonBody, readBody } from '../http/body.ts'
import { callerKey, type Caller } from '../http/callers.ts'
import { headerOf } from '../http/headers.ts'
import type { Kernel, RequestState } from '../http/kernel.ts'
import { limitHeaders } from '../http/limits.ts'
import { mayStillRead } from '../http/mount.ts'
import { ownRequests, type AskOwn } from '../http/own-requests.ts'
import { checkAgain, streamLimits } from '../http/sse.ts'
import { ownerOf } from '../http/take-body.ts'
import { callOf, type Calling } from './call.ts'
import { skillSource, type SkillsDependencies } from './skills.ts'
import { toolsOf, type ToolSet } from './tools.ts'

/**
 * The API for harnesses that speak MCP (revision 2026-07-28, and without sessions those of 2025): `POST /api/v1/mcp` with a login token or the
 * token of a run. Each call of a tool is one request to the API, with its caller, role, limits and codes; nothing is decided here.
 */
export interface McpDependencies extends SkillsDependencies {
  kernel: Pick<Kernel, 'callers' | 'limiter' | 'rooms' | 'streams' | 'streamCheckMs' | 'world' | 'log' | 'stopping'>
  contract: readonly AnyRoute[]
  /** The server of this replica, which answers the calls. */
  server: Server
}

const mcpPath = '/api/v1/mcp'
/** A file of 50 MB as base64 in an argument. */
const mcpBodyLimit = 72 * mebibyte
/** The list of tools changes with a release. */
const toolsTtlMs = 300_000
const listenMethod = 'subscriptions/listen'

export function mcpEndpoint(deps: McpDependencies): Koa.Middleware {
  const { kernel } = deps
  let serving: Promise<McpHttpHandler> | null = null
  // Made when it is first asked for: the library and the schemas of all tools take a while.
  const served = () => (serving ??= handlerOf(deps))
  kernel.stopping.addEventListener('abort', () => void serving?.then((handler) => handler.close()), { once: true })
  return async (ctx, next) => {
    if (ctx.path !== mcpPath) return next()
    const state = ctx.state as RequestState
    state.routeId = 'mcp'
    ctx.set('Cache-Control', 'no-store')
    // A cookie of a browser does not do: pages of others could call it then.
    const authorization = headerOf(ctx, 'authorization') ?? fail('auth_missing')
    const caller = await kernel.callers.callerOf(ctx.req)
    state.caller = caller
    const limit = await kernel.limiter.take('general', callerKey(caller))
    if (limit !== null) ctx.set(limitHeaders(limit))
    const { bytes, release } = await readBody(ctx.req, {
      limit: mcpBodyLimit,
      room: kernel.rooms.messages,
      owner: ownerOf(ctx, caller),
      world: kernel.world,
    })
    const leaving = new AbortController()
    ctx.res.once('close', () => leaving.abort())
    try {
      const message: unknown = ctx.method === 'POST' ? parseJsonBody(bytes, headerOf(ctx, 'content-type')) : undefined
      // A batch would be any number of calls in one request; the protocol has none since 2025-06-18.
      if (Array.isArray(message)) fail('validation_error', { param: 'body', message: 'Send one message at a time.' })
      const leave = methodOf(message) === listenMethod ? openStream(kernel, ctx, caller) : null
      try {
        const calling: Calling = {
          authorization,
          userAgent: headerOf(ctx, 'user-agent') ?? 'mcp',
          newKey: () => kernel.world.uuid(),
          signal: leaving.signal,
        }
        const answer = await (
          await served()
        ).fetch(requestOf(ctx, leaving.signal), {
          authInfo: { token: '', clientId: callerKey(caller), scopes: [], extra: { calling, caller } },
          ...(message === undefined ? {} : { parsedBody: message }),
        })
        release()
        await send(ctx, answer)
      } finally {
        leave?.()
      }
    } finally {
      release()
    }
  }
}

/** Counts a stream that stays open, and ends it when its reader has lost the right to read it. Returns what takes it back. */
function openStream(kernel: McpDependencies['kernel'], ctx: Koa.Context, caller: Caller): () => void {
  const leave = kernel.streams.take(caller)
  const cut = new AbortController()
  cut.signal.addEventListener('abort', () => void ctx.res.destroy(), { once: true })
  const mayRead = () => mayStillRead(kernel, ctx, { mayStillRead: () => Promise.resolve() })
  const stopChecks = checkAgain(kernel.world, kernel.streamCheckMs ?? streamLimits.checkMs, { mayRead, cut })
  return () => {
    stopChecks()
    leave()
  }
}

/** Makes a request without its body, which is parsed already. */
function requestOf(ctx: Koa.Context, signal: AbortSignal): Request {
  const headers = new Headers()
  for (const [name, value] of Object.entries(ctx.headers))
    if (!hidden.has(name)) for (const one of [value ?? []].flat()) headers.append(name, one)
  return new Request(`http://svc${mcpPath}`, { method: ctx.method, headers, signal })
}

const hidden: ReadonlySet<string> = new Set([
  'authorization',
  'cookie',
  'content-length',
  'content-encoding',
  'transfer-encoding',
])

async function send(ctx: Koa.Context, { status, headers, body }: Response): Promise<void> {
  ctx.status = status
  for (const [name, value] of headers) ctx.set(name, value)
  if (body === null) return void (ctx.body = null)
  ctx.respond = false
  ctx.res.statusCode = status
  // Whoever leaves in the middle of a stream ends it.
  await pipeline(Readable.fromWeb(body), ctx.res).catch(() => undefined)
}

const methodOf = (message: unknown): unknown =>
  typeof message === 'object' && message !== null && 'method' in message ? message.method : undefined

type Library = typeof library & { skills: typeof extension }

async function handlerOf({ kernel, contract, server, root, blobs }: McpDependencies): Promise<McpHttpHandler> {
  const loaded: Library = {
    ...(await import('@modelcontextprotocol/server')),
    skills: await import('@modelcontextprotocol/server/ext/skills'),
  }
  const tools = toolsOf(contract)
  const ask = ownRequests(server)
  return loaded.createMcpHandler(
    (context) => serverOf(context, { library: loaded, tools, ask, skills: { root, blobs } }),
    {
      maxRequestBodySize: mcpBodyLimit,
      onerror: (error) => kernel.log.debug({ err: error }, 'a message of MCP was refused'),
    },
  )
}

const instructions =
  'svc runs AI coding agents on the machines of their people. Tasks are the work, agents do it, runs are what they did. ' +
  'Names such as `task_create` are single calls; find_routes finds everything else. Lists are pages: `after` goes on from `nextCursor`.'

interface Serving {
  library: Library
  tools: ToolSet
  ask: AskOwn
  skills: SkillsDependencies
}

function serverOf({ authInfo }: McpRequestContext, { library, tools, ask, skills }: Serving): McpServer {
  const { ProtocolError, ProtocolErrorCode } = library
  const mcp = new library.McpServer(
    { name: 'svc', title: 'svc', version },
    {
      capabilities: { tools: {} },
      instructions,
      cacheHints: { 'tools/list': { ttlMs: toolsTtlMs, cacheScope: 'public' } },
    },
  )
  const { calling, caller } = authInfo!.extra as { calling: Calling; caller: Caller }
  if (caller.kind === 'person') {
    const source = skillSource(skills, caller.workspaceId)
    new library.skills.SkillsExtension({ source, onWarning: () => undefined }).attach(mcp)
  }
  mcp.server.setRequestHandler('tools/list', () => ({ tools: [...tools.list] }))
  mcp.server.setRequestHandler('tools/call', async ({ params }, { mcpReq }) => {
    const { name, arguments: args = {} } = params
    const signal = AbortSignal.any([calling.signal, mcpReq.signal])
    const result = await callOf({ name, args }, { tools, ask, calling: { ...calling, signal } })
    if (result === null) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no tool ${name}.`)
    return result
  })
  return mcp
}
