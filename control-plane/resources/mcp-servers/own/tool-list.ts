import type * as McpClient from '@modelcontextprotocol/client'
import { z } from 'zod'
import type { McpTool } from '../../../../shared/api/mcp-servers.ts'
import { Redactor } from '../../../../shared/lib/redact.ts'
import type { World } from '../../../../shared/lib/world.ts'
import { OutboundError } from '../../../outbound/outbound-error.ts'
import type { Outbound } from '../../../outbound/outbound.ts'

// Asks an MCP server on the network which tools it has, in either revision of the protocol, within limits of time, pages and bytes.

export const toolListLimits = {
  totalMs: 20_000,
  /** The bytes of all answers together. */
  bytes: 4 * 1024 * 1024,
  pages: 20,
  tools: 1_000,
  /** The characters of the schema of one tool, as JSON, and the levels in it. */
  schemaChars: 64 * 1024,
  schemaLevels: 64,
} as const

/** The reason why there is no list. The message may be shown: it holds nothing that the server said. */
export class ToolListError extends Error {
  override name = 'ToolListError'
  /** The status with which the server refused who asks; null: it is another trouble. */
  readonly refusedWith: 401 | 403 | null

  constructor(
    message: string,
    { refusedWith = null, ...options }: ErrorOptions & { refusedWith?: 401 | 403 | null } = {},
  ) {
    super(message, options)
    this.refusedWith = refusedWith
  }
}

export interface ToolSource {
  url: string
  headers: Readonly<Record<string, string>>
  /** The values that are taken out of the answers, as servers say back what they were sent. */
  secrets: readonly { name: string; value: string }[]
}

/** Fails with ToolListError. */
export async function listToolsOf(
  { url, headers, secrets }: ToolSource,
  { outbound, world, signal }: { outbound: Pick<Outbound, 'fetch'>; world: World; signal: AbortSignal },
): Promise<McpTool[]> {
  const library = await import('@modelcontextprotocol/client')
  const asking = new BoundedFetch(outbound, world)
  const client = new library.Client(
    { name: 'svc', version: '1' },
    { versionNegotiation: { mode: 'auto' }, jsonSchemaValidator: checksNothing, inputRequired: { autoFulfill: false } },
  )
  const transport = new library.StreamableHTTPClientTransport(new URL(url), {
    fetch: asking.fetch,
    requestInit: { headers: { ...headers } },
    reconnectionOptions: { ...onceOnly },
  })
  const over = new AbortController()
  const stopTimer = world.after(toolListLimits.totalMs, () => over.abort())
  const options = { signal: AbortSignal.any([over.signal, signal]), timeout: toolListLimits.totalMs }
  try {
    await client.connect(transport, options)
    const tools = await allTools(client, options)
    const shown = tools.map(readTool)
    return new Redactor([...secrets]).redactJson(shown) as McpTool[]
  } catch (error) {
    if (error instanceof ToolListError) throw error
    throw asking.troubleOf(error, over.signal.aborted)
  } finally {
    stopTimer()
    // Servers of 2025 keep a session until they are told.
    await transport.terminateSession().catch(() => undefined)
    await client.close().catch(() => undefined)
  }
}

const onceOnly = {
  maxRetries: 0,
  initialReconnectionDelay: 1,
  maxReconnectionDelay: 1,
  reconnectionDelayGrowFactor: 1,
} as const

/** No tool is called, so no output is held against a schema of the server. */
const checksNothing: McpClient.jsonSchemaValidator = {
  getValidator:
    <T>() =>
    (input: unknown): McpClient.JsonSchemaValidatorResult<T> => ({
      valid: true,
      data: input as T,
      errorMessage: undefined,
    }),
}

async function allTools(
  client: McpClient.Client,
  options: { signal: AbortSignal; timeout: number },
): Promise<McpClient.Tool[]> {
  const all: McpClient.Tool[] = []
  let cursor: string | undefined
  for (let page = 0; page < toolListLimits.pages; page++) {
    const request = { method: 'tools/list' as const, ...(cursor !== undefined && { params: { cursor } }) }
    const { tools, nextCursor } = await client.request(request, options)
    all.push(...tools)
    if (all.length > toolListLimits.tools) break
    if (nextCursor === undefined || nextCursor === '') return all
    cursor = nextCursor
  }
  throw new ToolListError('It has more tools than are listed.')
}

const text = z
  .string()
  .optional()
  .transform((value) => value?.slice(0, 20_000) ?? null)
const hint = z.boolean().optional().catch(undefined)
const tool = z.object({
  name: z.string().min(1).max(500),
  title: text,
  description: text,
  inputSchema: z.record(z.string(), z.unknown()).refine(isSmall, 'too large'),
  annotations: z
    .object({ readOnlyHint: hint, destructiveHint: hint, idempotentHint: hint, openWorldHint: hint })
    .nullish()
    .transform((hints) => hints ?? {}),
})

function readTool(said: McpClient.Tool): McpTool {
  return { object: 'mcp_tool', ...tool.parse(said) }
}

function isSmall(schema: unknown): boolean {
  let level = [schema]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > toolListLimits.schemaLevels) return false
    level = level.flatMap((value) => (typeof value === 'object' && value !== null ? Object.values(value) : []))
  }
  return JSON.stringify(schema).length <= toolListLimits.schemaChars
}

/** A fetch for the library, of which all answers together have a limit. It notes how the server refused. */
class BoundedFetch {
  private refusedWith: 401 | 403 | null = null
  private outboundError: OutboundError | null = null
  private leftBytes: number = toolListLimits.bytes
  private readonly until: number
  private readonly outbound: Pick<Outbound, 'fetch'>
  private readonly world: Pick<World, 'monotonic'>

  constructor(outbound: Pick<Outbound, 'fetch'>, world: Pick<World, 'monotonic'>) {
    this.outbound = outbound
    this.world = world
    this.until = world.monotonic() + toolListLimits.totalMs
  }

  readonly fetch = async (input: string | URL, init: RequestInit = {}): Promise<Response> => {
    // A GET would open a stream, to which nobody here listens.
    if ((init.method ?? 'GET') === 'GET') return new Response(null, { status: 405 })
    const timeoutMs = Math.max(1, this.until - this.world.monotonic())
    try {
      const limits = { bytes: Math.max(1, this.leftBytes), timeoutMs, redirects: 0 }
      const answer = await this.outbound.fetch(input, { ...init, limits })
      if (answer.status === 401 || answer.status === 403) this.refusedWith = answer.status
      return this.counted(answer)
    } catch (error) {
      this.note(error)
      throw error
    }
  }

  troubleOf(error: unknown, isOver: boolean): ToolListError {
    const { refusedWith, outboundError } = this
    const cause = { cause: error }
    if (refusedWith !== null)
      return new ToolListError(`It refused to answer (${refusedWith}).`, { ...cause, refusedWith })
    if (isOver) return new ToolListError('It took too long.', cause)
    if (outboundError !== null) return new ToolListError(`It could not be asked: ${outboundError.message}.`, cause)
    return new ToolListError('It gave an answer that is none.', cause)
  }

  private counted(answer: Response): Response {
    if (answer.body === null) return answer
    const { status, headers } = answer
    const counting = new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, controller) => {
        this.leftBytes -= chunk.length
        controller.enqueue(chunk)
      },
    })
    const body = answer.body.pipeThrough(counting)
    return new Response(body, { status, headers })
  }

  private note(error: unknown): void {
    if (error instanceof OutboundError) this.outboundError = error
  }
}
