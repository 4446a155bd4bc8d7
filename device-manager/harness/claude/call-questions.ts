import { isDeepStrictEqual } from 'node:util'
import type { CallDecision, ToolAsk } from '../adapter.ts'
import { forgetOldest } from '../parts/asked-calls.ts'
import { jsonLine } from '../parts/json-lines.ts'
import { OpenQuestions } from '../parts/open-questions.ts'
import { canUseTool, controlCancel, controlRequest, hookCallback } from './wire.ts'

/** A control line leads to one of these: a question for the run host, or an answer written at once. */
export interface QuestionStep {
  ask?: ToolAsk
  write?: string
}

/** `id`: of the request. */
type Question = { id: string; kind: 'hook' | 'permission'; toolCallId: string | null; input: unknown }

export interface CallQuestions {
  /** null: not a control request that can be answered. */
  request(line: unknown): QuestionStep | null
  /** Returns the refusal of a request that nobody is asked about; null: not a control request. */
  refuse(line: unknown, why: string): string | null
  /** claude withdrew a question: its tool call was aborted. */
  cancel(line: unknown): boolean
  answer(askId: string, decision: CallDecision): string | null
  /**
   * The call has its result: what was decided on it is not needed any more. Returns how it was decided; null: it was never asked, or
   * not answered; undefined: that cannot be told, since some question named no call, or too many calls had no result.
   */
  settled(toolCallId: string): CallDecision['behavior'] | null | undefined
}

/** Recorded streams hold it. */
export const hookCallbackId = 'gate'
export const initializeRequestId = 'initialize'

/**
 * Registers the hook that makes claude ask before every tool call, in every mode and in subagents. A hook that is not
 * answered in time fails closed; the time is long because the run host may have to ask elsewhere.
 */
export const initializeRequest = jsonLine({
  type: 'control_request',
  request_id: initializeRequestId,
  request: {
    subtype: 'initialize',
    hooks: { PreToolUse: [{ hookCallbackIds: [hookCallbackId], timeout: 3600 }] },
  },
})

const twins = 'Two calls were asked about under one id, and one answer would be taken for both: they are denied.'

/** A request that changes nothing, and that claude answers also while it works. */
export const stateRequest = (requestId: string): string =>
  jsonLine({ type: 'control_request', request_id: requestId, request: { subtype: 'mcp_status' } })

/**
 * Answers claude's questions about tool calls. In doubt the answer is "deny", and always a well-formed one: an error
 * answer to a hook lets the tool run where permissions are bypassed.
 *
 * claude may ask twice for one call, by the hook and then, where its own rules or the person's settings want that, as a
 * permission. The run host is asked once: an approval by the call's digest is good for one question. The second question
 * gets the first one's answer, unless the input has changed in between (another hook can do that); then it is new.
 */
export function callQuestions(): CallQuestions {
  const open = new OpenQuestions<Question>()
  const decided = new Map<string, { decision: CallDecision; input: unknown }>()

  let cwd: string | null = null
  /** Every decision is kept until its call has a result. */
  let isEachKept = true

  const raise = (name: string, question: Question): QuestionStep => {
    const [askId] = open.raise(question) ?? []
    if (askId === undefined) {
      return { write: answerTo(question, { behavior: 'deny', message: 'Too many calls are asked about at once.' }) }
    }
    if (question.toolCallId === null) isEachKept = false
    const ask = { askId, toolCallId: question.toolCallId, name, input: question.input }
    return { ask: cwd === null ? ask : { ...ask, cwd } }
  }
  const onHook = (requestId: string, request: unknown): QuestionStep => {
    const hook = hookCallback.safeParse(request)
    if (!hook.success || hook.data.callback_id !== hookCallbackId) {
      return {
        write: hookAnswer(requestId, { behavior: 'deny', message: 'The call could not be read, so it is denied.' }),
      }
    }
    const { input } = hook.data
    cwd = input.cwd ?? cwd
    const toolCallId = input.tool_use_id ?? hook.data.tool_use_id ?? null
    return raise(input.tool_name, { id: requestId, kind: 'hook', toolCallId, input: input.tool_input })
  }
  const onPermission = (requestId: string, request: unknown): QuestionStep => {
    const wanted = canUseTool.safeParse(request)
    if (!wanted.success) {
      const decision = { behavior: 'deny', message: 'The call could not be read, so it is denied.' } as const
      return { write: permissionAnswer(requestId, decision, null) }
    }
    const { tool_name: name, input, tool_use_id: toolCallId = null } = wanted.data
    const before = toolCallId === null ? undefined : decided.get(toolCallId)
    if (before !== undefined && isDeepStrictEqual(before.input, input)) {
      return { write: permissionAnswer(requestId, before.decision, input) }
    }
    return raise(name, { id: requestId, kind: 'permission', toolCallId, input })
  }

  return {
    request(value) {
      const parsed = controlRequest.safeParse(value)
      if (!parsed.success) return null
      const { request_id: requestId, request } = parsed.data
      if (open.forget(requestId)) return { write: refused(requestId, request.subtype, twins) }
      if (request.subtype === 'hook_callback') return onHook(requestId, request)
      if (request.subtype === 'can_use_tool') return onPermission(requestId, request)
      // Everything must be answered, or the turn hangs.
      return { write: controlError(requestId, `svc does not answer ${request.subtype}.`) }
    },
    refuse(value, why) {
      const parsed = controlRequest.safeParse(value)
      if (!parsed.success) return null
      const { request_id: requestId, request } = parsed.data
      open.forget(requestId)
      return refused(requestId, request.subtype, why)
    },
    cancel(value) {
      const parsed = controlCancel.safeParse(value)
      return parsed.success && (open.forget(parsed.data.request_id), true)
    },
    answer(askId, decision) {
      const answered = open.answer(askId, decision)
      if (answered === null) return null
      const { question } = answered
      const { toolCallId, input } = question
      if (toolCallId !== null) decided.set(toolCallId, { decision, input })
      // The oldest is asked about again.
      if (forgetOldest(decided)) isEachKept = false
      return answerTo(question, decision)
    },
    settled(toolCallId) {
      const behavior = decided.get(toolCallId)?.decision.behavior ?? null
      decided.delete(toolCallId)
      return behavior === null && !isEachKept ? undefined : behavior
    },
  }
}

function refused(requestId: string, subtype: string, message: string): string {
  const decision = { behavior: 'deny', message } as const
  if (subtype === 'hook_callback') return hookAnswer(requestId, decision)
  if (subtype === 'can_use_tool') return permissionAnswer(requestId, decision, null)
  return controlError(requestId, message)
}

function answerTo({ id, kind, input }: Question, decision: CallDecision): string {
  return kind === 'hook' ? hookAnswer(id, decision) : permissionAnswer(id, decision, input)
}

/** `continue: false` makes claude end its turn once the tool calls that run have ended. */
function hookAnswer(requestId: string, decision: CallDecision): string {
  const isStop = decision.behavior === 'deny' && decision.stop === true
  return success(requestId, {
    ...(isStop && { continue: false, stopReason: decision.message }),
    hookSpecificOutput: {
      hookEventName: 'PreToolUse',
      permissionDecision: decision.behavior,
      permissionDecisionReason: decision.behavior === 'deny' ? decision.message : (decision.rule ?? 'allowed by svc'),
    },
  })
}

function permissionAnswer(requestId: string, decision: CallDecision, input: unknown): string {
  return success(
    requestId,
    decision.behavior === 'allow'
      ? { behavior: 'allow', updatedInput: input }
      : { behavior: 'deny', message: decision.message, ...(decision.stop === true && { interrupt: true }) },
  )
}

function success(requestId: string, response: unknown): string {
  return jsonLine({ type: 'control_response', response: { subtype: 'success', request_id: requestId, response } })
}

function controlError(requestId: string, error: string): string {
  return jsonLine({ type: 'control_response', response: { subtype: 'error', request_id: requestId, error } })
}

export function userMessage(text: string): string {
  return jsonLine({ type: 'user', message: { role: 'user', content: [{ type: 'text', text }] } })
}
