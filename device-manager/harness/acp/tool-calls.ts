import type { RunEventBody } from '../../../shared/runs/events.ts'
import type { McpServers } from '../../../shared/runs/mcp-servers.ts'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import type { RedactText, ToolAsk } from '../adapter.ts'
import { AskedCalls, maxCallsAtOnce, type Unasked } from '../parts/asked-calls.ts'
import { callEvent } from '../parts/event-pieces.ts'
import { isAlwaysAllowed, isSameCall, namedCall, type AcpShownCall } from './calls.ts'
import { mcpNameOf } from './mcp-servers.ts'
import * as wire from './wire.ts'

export interface Call extends AcpShownCall {
  isTold: boolean
  /** It has begun to run, as the program says. */
  hasBegun: boolean
}

/** The calls of a run that have begun, with what was asked about each. */
export class ToolCalls {
  readonly #spec: RunSpec
  readonly #redactText: RedactText
  readonly #mcpServers: McpServers
  readonly #calls = new Map<string, Call>()
  readonly #asked: AskedCalls<AcpShownCall>

  constructor(
    spec: RunSpec,
    { redactText, mcpServers, cwds }: { redactText: RedactText; mcpServers: McpServers; cwds: readonly string[] },
  ) {
    this.#asked = new AskedCalls((asked, made) => isSameCall(asked, made, cwds))
    this.#spec = spec
    this.#mcpServers = mcpServers
    this.#redactText = redactText
  }

  get(toolCallId: string): Call | undefined {
    return this.#calls.get(toolCallId)
  }

  /** Notes what a question shows of a call: only that is judged. `ask`: none where it is refused at once. */
  noteAsked(toolCallId: string, { shown, ask }: { shown: AcpShownCall; ask: ToolAsk | undefined }): void {
    this.#asked.note(toolCallId, { askIds: ask === undefined ? [] : [ask.askId], shown: [shown] })
  }

  answered(askId: string, isAllowed: boolean): void {
    this.#asked.answered(askId, isAllowed)
  }

  /** The call with what is newly known of it; null: there are too many. */
  note(update: wire.ToolCallUpdate): Call | null {
    const { toolCallId, kind, rawInput } = update
    const known = this.#calls.get(toolCallId)
    if (known === undefined && this.#calls.size >= maxCallsAtOnce) return null
    const call = known ?? { kind: null, rawInput: undefined, mcpName: null, isTold: false, hasBegun: false }
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
    const named = namedCall(call.kind, call.rawInput, call.mcpName)
    return [callEvent({ toolCallId }, named ?? { name: 'acp__unclear', input: call.rawInput }, this.#redactText)]
  }

  /**
   * The call has ended. Returns what ran although the lists had no say; null: nothing. A call that failed may have been refused before
   * it ran.
   */
  end(toolCallId: string, call: Call, status: 'completed' | 'failed'): Unasked | null {
    const wasAllowed = this.#asked.isAllowed(toolCallId)
    const isMade = status === 'completed' || wasAllowed
    const isGood = this.#asked.take(toolCallId, { shown: call, isMade })
    this.#calls.delete(toolCallId)
    const name = namedCall(call.kind, call.rawInput, call.mcpName)?.name
    if (name !== undefined && isAlwaysAllowed(this.#spec, name)) return null
    const isTrouble = isGood === false || (isGood === null && (isMade || call.hasBegun))
    return isTrouble ? { name: name ?? 'a tool', wasAsked: wasAllowed } : null
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
