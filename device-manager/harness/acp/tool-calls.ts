import { canonicalJson } from '../../../shared/lib/canonical-json.ts'
import type { RunEventBody } from '../../../shared/runs/events.ts'
import type { McpServers } from '../../../shared/runs/mcp-servers.ts'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import type { RedactText } from '../adapter.ts'
import { cappedInput } from '../parts/event-pieces.ts'
import { isAlwaysAllowed, isSameCall, namedCall } from './calls.ts'
import { mcpNameOf } from './mcp-servers.ts'
import * as wire from './wire.ts'

/** Calls that have begun and not ended. */
const maxCalls = 1_000

export interface Call {
  kind: string | null
  rawInput: unknown
  /** It is a tool of a server that svc gave. */
  mcpName: string | null
  isTold: boolean
  /** It has begun to run, as the program says. */
  hasBegun: boolean
  /** The question about the call, and the answer; null: nothing was asked. */
  asked: { rawInput: unknown; mcpName: string | null; isAllowed: boolean } | null
}

/** The calls of a run that have begun, with what was asked about each. */
export class ToolCalls {
  readonly #spec: RunSpec
  readonly #redactText: RedactText
  readonly #mcpServers: McpServers
  readonly #calls = new Map<string, Call>()

  constructor(spec: RunSpec, { redactText, mcpServers }: { redactText: RedactText; mcpServers: McpServers }) {
    this.#spec = spec
    this.#mcpServers = mcpServers
    this.#redactText = redactText
  }

  get(toolCallId: string): Call | undefined {
    return this.#calls.get(toolCallId)
  }

  delete(toolCallId: string): void {
    this.#calls.delete(toolCallId)
  }

  /** The call with what is newly known of it; null: there are too many. */
  note(update: wire.ToolCallUpdate): Call | null {
    const { toolCallId, kind, rawInput } = update
    const known = this.#calls.get(toolCallId)
    if (known === undefined && this.#calls.size >= maxCalls) return null
    const call = known ?? {
      kind: null,
      rawInput: undefined,
      mcpName: null,
      isTold: false,
      hasBegun: false,
      asked: null,
    }
    call.kind = kind ?? call.kind
    call.rawInput = rawInput ?? call.rawInput
    call.mcpName = this.mcpNameOf(update) ?? call.mcpName
    this.#calls.set(toolCallId, call)
    return call
  }

  mcpNameOf(update: wire.ToolCallUpdate): string | null {
    return mcpNameOf(update, this.#mcpServers)
  }

  /** A call is told once, when its input is there. */
  told(toolCallId: string, call: Call): RunEventBody[] {
    if (call.isTold) return []
    call.isTold = true
    const { name, input } = namedCall(call.kind, call.rawInput, call.mcpName) ?? {
      name: 'acp__unclear',
      input: call.rawInput,
    }
    return [{ kind: 'tool_call', data: { toolCallId, name, input: cappedInput(input, this.#redactText) } }]
  }

  /** Returns what ran although the lists had no say; null: nothing. A call that failed may have been refused before it ran. */
  troubleWith({ kind, rawInput, mcpName, asked, hasBegun }: Call, status: 'completed' | 'failed'): string | null {
    const name = namedCall(kind, rawInput, mcpName)?.name
    if (name !== undefined && isAlwaysAllowed(this.#spec, name)) return null
    if (asked === null) return status === 'completed' || hasBegun ? (name ?? 'a tool') : null
    if (!asked.isAllowed) return status === 'completed' ? (name ?? 'a tool') : null
    if (asked.mcpName !== mcpName) return `${name ?? 'a tool'} where it asked for another one`
    if (mcpName !== null) {
      const [before, after] = [asked.rawInput, rawInput].map((input) => canonicalJson(input ?? {}))
      return before === after ? null : `${mcpName} with another input than it asked for`
    }
    return isSameCall(kind, asked.rawInput, rawInput)
      ? null
      : `${name ?? 'a tool'} with another input than it asked for`
  }
}

export function outputText({ content, rawOutput }: wire.ToolCallUpdate): string {
  const texts = (content ?? []).flatMap((part) => {
    const parsed = wire.contentText.safeParse(part)
    return parsed.success ? [parsed.data.content.text] : []
  })
  if (texts.length > 0) return texts.join('\n')
  return typeof rawOutput === 'string' ? rawOutput : rawOutput == null ? '' : JSON.stringify(rawOutput)
}
