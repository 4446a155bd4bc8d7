import type { CallDecision, ToolAsk } from '../adapter.ts'
import { callsOf, type CallPlace } from './calls.ts'
import { stdinLine } from './orders.ts'
import type { GateCall } from './wire.ts'

interface Pending {
  call: GateCall
  /** Questions that are not answered yet. */
  left: number
  refusal: string | null
}

/** More calls than a turn of any model makes at once; the rest is refused. */
const maxCalls = 1_000
const unjudgeable = 'Nobody can say which files this patch is about. Go on without it.'
const nobodyThere =
  'Nobody sits in front of this run. Ask a person with svc (svc question), or decide for yourself and say so.'

/**
 * The calls that wait in svc's plugin. A call is asked once its part has come in the session, so that it stands behind the
 * words before it:
 *
 *     held -- its part comes -> asked -- all answers are there -> allowed | refused
 */
export class Gate {
  readonly #held = new Map<string, GateCall>()
  readonly #pending = new Map<string, Pending>()
  /** Calls that svc was asked about, and whether they may be made. */
  readonly #known = new Map<string, boolean>()
  #count = 0

  /** Returns what is written where the call is refused at once. */
  hold(call: GateCall): string | null {
    const key = keyOf(call)
    // Some models give each turn's calls the same ids: one that is over may come again, one that waits may not.
    if (this.#known.size >= maxCalls || this.#known.has(key)) return answerLine(call.id, 'Too many calls at once.')
    this.#known.set(key, false)
    // The tool to which opencode turns a call that is none; it only tells the model.
    if (call.tool === 'invalid') return this.#allow(call)
    if (call.tool === 'question') return answerLine(call.id, nobodyThere)
    this.#held.set(key, call)
    return null
  }

  /** The part of a call has come; nothing where it is not held. */
  raise(
    part: { sessionID: string; callID: string },
    { place, toolCallId }: { place: CallPlace; toolCallId: string },
  ): { asks?: ToolAsk[]; write?: string } {
    const key = keyOf(part)
    const call = this.#held.get(key)
    if (call === undefined) return {}
    this.#held.delete(key)
    const calls = callsOf(call.tool, call.args, place)
    if (calls === null) return { write: answerLine(call.id, unjudgeable) }
    const pending: Pending = { call, left: calls.length, refusal: null }
    const cwd = workdirOf(call.args)
    const asks = calls.map(({ name, input }): ToolAsk => {
      const askId = `ask-${++this.#count}`
      this.#pending.set(askId, pending)
      return { askId, toolCallId, name, input, ...(cwd !== null && { cwd }) }
    })
    return { asks }
  }

  /** null: the question is not known, or others about the same call are still open. */
  answer(askId: string, decision: CallDecision): string | null {
    const pending = this.#pending.get(askId)
    if (pending === undefined) return null
    this.#pending.delete(askId)
    pending.left--
    if (decision.behavior === 'deny') pending.refusal ??= decision.message
    if (pending.left > 0) return null
    return pending.refusal === null ? this.#allow(pending.call) : answerLine(pending.call.id, pending.refusal)
  }

  /** The call is over. */
  forget(call: { sessionID: string; callID: string }): void {
    this.#held.delete(keyOf(call))
    this.#known.delete(keyOf(call))
  }

  allowed(call: { sessionID: string; callID: string }): boolean {
    return this.#known.get(keyOf(call)) === true
  }

  #allow(call: GateCall): string {
    this.#known.set(keyOf(call), true)
    return answerLine(call.id, null)
  }
}

/** Models give ids to calls that may be the same in two sessions. */
const keyOf = ({ sessionID, callID }: { sessionID: string; callID: string }): string => `${sessionID}/${callID}`

const answerLine = (id: string, refusal: string | null): string =>
  stdinLine(refusal === null ? { id, allow: true } : { id, allow: false, message: refusal })

function workdirOf(args: unknown): string | null {
  const workdir = typeof args === 'object' && args !== null && 'workdir' in args ? args.workdir : null
  return typeof workdir === 'string' ? workdir : null
}
