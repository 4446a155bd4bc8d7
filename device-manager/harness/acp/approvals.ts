import type { CallDecision, ToolAsk } from '../adapter.ts'
import { jsonLine } from '../parts/json-lines.ts'
import { OpenQuestions } from '../parts/open-questions.ts'
import { namedCall } from './calls.ts'
import type { PermissionRequest, AcpRequestId } from './wire.ts'

interface Pending {
  id: AcpRequestId
  allow: string | null
  reject: string | null
}

/** The effect of an answer: what is written, and whether the call may run. */
export interface AcpAnswered {
  isAllowed: boolean
  write: string
}

/**
 * The open questions of a program. Only an option that holds for one call is chosen; where there is none, or in doubt, the
 * answer is `cancelled`.
 */
export class AcpApprovals {
  readonly #open = new OpenQuestions<Pending>()

  /** Forgets the question that is open under the id of a request that comes, and says whether there was one. */
  forget(id: AcpRequestId): boolean {
    return this.#open.forget(id)
  }

  raise(
    id: AcpRequestId,
    { toolCall, options, mcpName }: Pick<PermissionRequest, 'toolCall' | 'options'> & { mcpName: string | null },
  ): { ask?: ToolAsk; write?: string } {
    const optionOf = (kind: string) => options.find((option) => option.kind === kind)?.optionId ?? null
    const [allow, reject] = [optionOf('allow_once'), optionOf('reject_once')]
    const call = namedCall(toolCall.kind, toolCall.rawInput, mcpName)
    // One option for both would say yes and no at once.
    if (allow !== null && allow === reject) return { write: cancelled(id) }
    const [askId] = call === null || allow === null ? [] : (this.#open.raise({ id, allow, reject }) ?? [])
    if (call === null || askId === undefined) return { write: chosen(id, reject) }
    return { ask: { askId, toolCallId: toolCall.toolCallId, ...call } }
  }

  /** The option that refuses once, where there is one. */
  refuse(id: AcpRequestId, { options }: PermissionRequest): { write: string } {
    return { write: chosen(id, options.find(({ kind }) => kind === 'reject_once')?.optionId ?? null) }
  }

  /** null: the question is not known, or was answered already. */
  answer(askId: string, decision: CallDecision): AcpAnswered | null {
    const answered = this.#open.answer(askId, decision)
    if (answered === null) return null
    const { id, allow, reject } = answered.question
    const isAllowed = decision.behavior === 'allow'
    const isStopped = decision.behavior === 'deny' && decision.stop === true
    return { isAllowed, write: isStopped ? cancelled(id) : chosen(id, isAllowed ? allow : reject) }
  }
}

export const cancelled = (id: AcpRequestId): string =>
  jsonLine({ jsonrpc: '2.0', id, result: { outcome: { outcome: 'cancelled' } } })

function chosen(id: AcpRequestId, optionId: string | null): string {
  if (optionId === null) return cancelled(id)
  return jsonLine({ jsonrpc: '2.0', id, result: { outcome: { outcome: 'selected', optionId } } })
}
