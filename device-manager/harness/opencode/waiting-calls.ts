import { adviceToModel } from '../../../shared/permissions/decide.ts'
import type { CallDecision, ToolAsk } from '../adapter.ts'
import { AskedCalls, isSameText, maxCallsAtOnce, shownDigest } from '../parts/asked-calls.ts'
import { OpenQuestions } from '../parts/open-questions.ts'
import { callsOf, noTool, type CallPlace } from './calls.ts'
import { stdinLine } from './orders.ts'
import type { PluginCall } from './wire.ts'

/** A call as its session shows it. */
export interface OpencodeShownCall {
  sessionID: string
  callID: string
  tool: string
  input: unknown
}

const unjudgeable = `Nobody can say which files this patch is about.${adviceToModel}`
const twins = 'Two calls were asked about under one id, and one answer would be taken for both: they are denied.'
const nobodyThere =
  'Nobody sits in front of this run. Ask a person with svc (svc question), or decide for yourself and say so.'

/**
 * The calls that wait in svc's plugin. A call is asked once its part has come in the session, so that it stands behind the
 * words before it:
 *
 *     held -- its part comes -> asked -- all answers are there -> allowed | refused -- its part ends -> forgotten
 *
 * The plugin tells with what input the tool is about to run, the part what the model asked for. They differ where a plugin of the
 * person's has changed the input, and then both are judged: nobody can say for certain which of them is run.
 */
export class WaitingCalls {
  readonly #held = new Map<string, PluginCall>()
  /** Of a call there may be many questions; the calls are counted when they are held. */
  readonly #open = new OpenQuestions<PluginCall>(Infinity)
  /** Calls that svc was asked about and that have not ended, with the id under which the plugin waits; null: it has its answer. */
  readonly #known = new Map<string, string | null>()
  readonly #asked = new AskedCalls<string>(isSameText)

  /** Returns what is written where the call is refused at once. */
  hold(call: PluginCall): string | null {
    const key = keyOf(call)
    const isTwin = this.#forget(call.id)
    // Some models give each turn's calls the same ids: one that is over may come again, one that waits may not.
    if (this.#known.size >= maxCallsAtOnce || this.#known.has(key))
      return answerLine(call.id, isTwin ? twins : 'Too many calls at once.')
    if (isTwin) return this.#answer(call, twins)
    this.#known.set(key, call.id)
    if (call.tool === noTool) return this.#allowAtOnce(call)
    if (call.tool === 'question') return this.#answer(call, nobodyThere)
    this.#held.set(key, call)
    return null
  }

  /** The run has ended: nobody is asked any more. */
  refuse(call: PluginCall): string {
    this.#forget(call.id)
    return answerLine(call.id, 'The run has ended. Make no further calls.')
  }

  /** The part of a call has come; nothing where it is not held. */
  raise(
    part: OpencodeShownCall,
    { place, toolCallId }: { place: CallPlace; toolCallId: string },
  ): { asks?: ToolAsk[]; write?: string } {
    const key = keyOf(part)
    const call = this.#held.get(key)
    if (call === undefined) return {}
    this.#held.delete(key)
    const forms = [{ tool: call.tool, input: call.args }, part]
    const shown = [...new Set(forms.map(digestOf))]
    const calls = forms.slice(0, shown.length).map(({ tool, input }) => callsOf(tool, input, place))
    if (calls.includes(null)) return { write: this.#answer(call, unjudgeable) }
    const named = calls.flatMap((some) => some ?? [])
    const cwd = workdirOf(call.args)
    const askIds = this.#open.raise(call, named.length) ?? []
    const asks = askIds.map((askId, at): ToolAsk => {
      const { name, input } = named[at]!
      return { askId, toolCallId, name, input, ...(cwd !== null && { cwd }) }
    })
    this.#asked.note(key, { askIds, shown })
    return { asks }
  }

  /** null: the question is not known, or others about the same call are still open. */
  answer(askId: string, decision: CallDecision): string | null {
    const answered = this.#open.answer(askId, decision)
    if (answered === null) {
      this.#asked.answered(askId, null)
      return null
    }
    const { question: call, decision: made } = answered
    this.#asked.answered(askId, made.behavior === 'allow')
    return this.#answer(call, made.behavior === 'allow' ? null : made.message)
  }

  /** The call is over. Returns whether it was asked and, if it was made, allowed as it was made; null: it was never asked. */
  ended(part: OpencodeShownCall, { isCompleted }: { isCompleted: boolean }): boolean | null {
    const key = keyOf(part)
    this.#held.delete(key)
    this.#known.delete(key)
    // One that failed was begun, too, once it was allowed.
    return this.#asked.take(key, { shown: digestOf(part), isMade: isCompleted || this.#asked.isAllowed(key) })
  }

  /** svc was asked about the call, and it has not ended. */
  knows(call: { sessionID: string; callID: string }): boolean {
    return this.#known.has(keyOf(call))
  }

  allowed(call: { sessionID: string; callID: string }): boolean {
    return this.#asked.isAllowed(keyOf(call))
  }

  #allowAtOnce(call: PluginCall): string {
    const askId = this.#open.nextAskId()
    this.#asked.note(keyOf(call), { askIds: [askId], shown: [digestOf({ tool: call.tool, input: call.args })] })
    this.#asked.answered(askId, true)
    return this.#answer(call, null)
  }

  #answer(call: PluginCall, refusal: string | null): string {
    this.#known.set(keyOf(call), null)
    return answerLine(call.id, refusal)
  }

  /** Forgets the call that waits under this id, and says whether there was one: the plugin is told nothing more about it. */
  #forget(id: string): boolean {
    const [key] = [...this.#known].find(([, known]) => known === id) ?? []
    if (key === undefined) return false
    this.#held.delete(key)
    this.#known.set(key, null)
    this.#open.forget(id)
    return true
  }
}

/** Models give ids to calls that may be the same in two sessions. */
const keyOf = ({ sessionID, callID }: { sessionID: string; callID: string }): string => `${sessionID}/${callID}`

const digestOf = ({ tool, input }: { tool: string; input: unknown }): string => shownDigest([tool, input])

const answerLine = (id: string, refusal: string | null): string =>
  stdinLine(refusal === null ? { id, allow: true } : { id, allow: false, message: refusal })

function workdirOf(args: unknown): string | null {
  const workdir = typeof args === 'object' && args !== null && 'workdir' in args ? args.workdir : null
  return typeof workdir === 'string' ? workdir : null
}
