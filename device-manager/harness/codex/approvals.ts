import { adviceToModel } from '../../../shared/permissions/decide.ts'
import type { CallDecision, NamedCall, ToolAsk } from '../adapter.ts'
import { canonicalJson } from '../../../shared/lib/canonical-json.ts'
import { jsonLine } from '../parts/json-lines.ts'
import { OpenQuestions } from '../parts/open-questions.ts'
import { mcpCall, patchCalls, patchShown, shellCall } from './items.ts'
import {
  commandApproval,
  elicitation,
  fileApproval,
  codexRequest,
  type FileChange,
  type CodexRequestId,
} from './wire.ts'

/** The effect of a request of codex: questions for the run host, or an answer written at once. */
export interface ApprovalStep {
  asks?: ToolAsk[]
  /** What the questions show of the call, as `shownOf` tells it of the item. */
  shown?: string
  write?: string
  /** With an answer that refuses. */
  told?: Told
}

/** The turn in which a call is asked about. */
interface AskedTurn {
  threadId: string
  turnId: string | null
}
interface Pending extends AskedTurn {
  id: CodexRequestId
  kind: 'approval' | 'elicitation'
}

/** The effect of an answer. A refusal of codex's protocol carries no words, so its reason goes to the turn beside it. */
export interface CodexAnswered {
  write: string
  isAllowed: boolean
  told: Told
}
export type Told = (AskedTurn & { reason: string }) | null

/**
 * Answers what codex asks before it acts. Under the policy `untrusted` it asks before each command, patch and MCP call, in
 * its subagents too. In doubt the answer is `decline`, and a request that is not understood gets an error: codex waits for
 * every answer, and does not act without one.
 */
export class CodexApprovals {
  readonly #open = new OpenQuestions<Pending>()

  /** Declines what codex asks once nobody is asked any more; null: not a request. */
  refuse(value: unknown): ApprovalStep | null {
    const parsed = codexRequest.safeParse(value)
    if (!parsed.success) return null
    const { id, method } = parsed.data
    this.#open.forget(id)
    return { write: refused(id, method) }
  }

  /** null: not a request. `changesOf` knows the patch of an item, which the request for it does not repeat. */
  request(
    value: unknown,
    changesOf: (threadId: string, itemId: string) => readonly FileChange[] | null,
  ): ApprovalStep | null {
    const parsed = codexRequest.safeParse(value)
    if (!parsed.success) return null
    const { id, method, params } = parsed.data
    if (this.#open.forget(id)) return { write: refused(id, method) }
    switch (method) {
      case 'item/commandExecution/requestApproval': {
        const wanted = commandApproval.safeParse(params)
        // Without a command it is about something else, such as the network, for which no rule speaks.
        if (!wanted.success || wanted.data.command == null) return unjudgeable(id, wanted.data)
        const { itemId, command, cwd } = wanted.data
        return this.#raise(id, {
          kind: 'approval',
          calls: [shellCall(command)],
          shown: command,
          toolCallId: itemId,
          of: wanted.data,
          ...(cwd != null && { cwd }),
        })
      }
      case 'item/fileChange/requestApproval': {
        const wanted = fileApproval.safeParse(params)
        const changes = wanted.success ? changesOf(wanted.data.threadId, wanted.data.itemId) : null
        if (!wanted.success || changes === null || changes.length === 0) return unjudgeable(id, wanted.data)
        return this.#raise(id, {
          kind: 'approval',
          calls: patchCalls(changes),
          shown: patchShown(changes),
          toolCallId: wanted.data.itemId,
          of: wanted.data,
        })
      }
      case 'mcpServer/elicitation/request': {
        const wanted = elicitation.safeParse(params)
        // A server wants to know something of a person, and nobody is there.
        if (!wanted.success) return { write: decided(id, 'elicitation', 'decline') }
        const { serverName, _meta: meta } = wanted.data
        const call = mcpCall(serverName, meta.tool_name, meta.tool_params)
        return this.#raise(id, {
          kind: 'elicitation',
          calls: [call],
          shown: canonicalJson(call.input),
          toolCallId: null,
          of: wanted.data,
        })
      }
      default:
        return { write: unanswered(id, method) }
    }
  }

  /** null: the question is not known, or others of the same request are still open. */
  answer(askId: string, decision: CallDecision): CodexAnswered | null {
    const answered = this.#open.answer(askId, decision)
    if (answered === null) return null
    const { id, kind, threadId, turnId } = answered.question
    const { decision: made } = answered
    if (made.behavior === 'allow') return { write: decided(id, kind, 'accept'), isAllowed: true, told: null }
    if (made.stop === true) return { write: decided(id, kind, 'cancel'), isAllowed: false, told: null }
    const told = { threadId, turnId, reason: made.message }
    return { write: decided(id, kind, 'decline'), isAllowed: false, told }
  }

  #raise(
    id: CodexRequestId,
    {
      kind,
      calls,
      shown,
      toolCallId,
      cwd,
      of: { threadId, turnId = null },
    }: Pick<Pending, 'kind'> & {
      calls: readonly NamedCall[]
      shown: string
      toolCallId: string | null
      cwd?: string
      of: { threadId: string; turnId?: string | null | undefined }
    },
  ): ApprovalStep {
    const askIds = this.#open.raise({ id, kind, threadId, turnId }, calls.length)
    if (askIds === null) return { write: decided(id, kind, 'decline') }
    const asks = askIds.map((askId, at): ToolAsk => {
      const { name, input } = calls[at]!
      return { askId, toolCallId, name, input, ...(cwd !== undefined && { cwd }) }
    })
    return { asks, shown }
  }
}

/** It says too little of what is to be done. */
function unjudgeable(
  id: CodexRequestId,
  of: { threadId: string; turnId?: string | null | undefined } | undefined,
): ApprovalStep {
  const write = decided(id, 'approval', 'decline')
  const reason = `It says too little of what it does to be judged by the agent's rules.${adviceToModel}`
  return { write, told: of === undefined ? null : { threadId: of.threadId, turnId: of.turnId ?? null, reason } }
}

const unanswered = (id: CodexRequestId, method: string): string =>
  jsonLine({ id, error: { code: -32601, message: `svc does not answer ${method}.` } })

function refused(id: CodexRequestId, method: string): string {
  if (!/requestApproval$|elicitation\/request$/.test(method)) return unanswered(id, method)
  return decided(id, method.endsWith('requestApproval') ? 'approval' : 'elicitation', 'decline')
}

function decided(id: CodexRequestId, kind: Pending['kind'], decision: 'accept' | 'decline' | 'cancel'): string {
  if (kind === 'approval') return jsonLine({ id, result: { decision } })
  const result = { action: decision, content: decision === 'accept' ? {} : null, _meta: null }
  return jsonLine({ id, result })
}
