import { createHash } from 'node:crypto'
import { expect } from 'vitest'
import { finishRun } from '../../../control-plane/run/endings/end-run.ts'
import { raiseToolApproval } from '../../../control-plane/resources/approvals/steps/raise.ts'
import { findRun } from '../../../control-plane/resources/runs/store.ts'
import { canonicalJson } from '../../../shared/lib/canonical-json.ts'
import { specOf } from '../../kit/rows.ts'
import { outcomeOf } from '../../kit/server.ts'
import { agentCalls, type AgentScene } from './agent-calls-kit.ts'

export const digestOf = (name: string, args: unknown) =>
  createHash('sha256')
    .update(canonicalJson([name, args]))
    .digest('hex')

/** Returns what tests of approvals do beside what those of all gates do. */
export function approvalCalls(scene: () => AgentScene) {
  const calls = agentCalls(scene)

  const ask = async (token: string, body: Record<string, unknown> = {}) =>
    calls.post('/approvals', { prompt: 'Deploy build 17?', gatedThing: { name: 'deploy' }, ...body }, token)

  /** An open approval, raised by the member's agent. */
  async function raised(body: Record<string, unknown> = {}) {
    const caller = await calls.agentCaller()
    const reply = await ask(caller.token, body)
    expect(outcomeOf(reply)).toBe('201')
    return { ...caller, approval: reply.body.approval, id: reply.body.approval.id as string }
  }

  /** A tool call that a device asked about in a run which has ended so. */
  async function askedCall(command = 'npm publish', name = 'Bash', run: Record<string, unknown> = {}) {
    const caller = await calls.agentCaller({}, { run })
    const { server } = scene()
    const { root } = server.database
    const asking = (await findRun(root, caller.runId))!
    const toolArgs = { command }
    const call = {
      toolCallId: 'call_1',
      name,
      inputDigest: digestOf(name, toolArgs),
      safeSummary: command,
      toolArgs,
      prompt: `Allow ${name}: ${command}?`,
    }
    const ending = { type: 'cancelled', exitReason: 'approval_requested', errorMessage: null } as const
    const id = await root.transaction(async (tx) => {
      const raised = await raiseToolApproval(tx, asking, call, server.world)
      await finishRun(tx, asking, { ...ending, at: server.world.now(), world: server.world })
      return raised
    })
    return { ...caller, id, call }
  }

  const allowCallsOf = async (runId: string): Promise<unknown> => (await specOf(scene().server, runId)).allowCalls

  return { ...calls, ask, raised, askedCall, allowCallsOf }
}
