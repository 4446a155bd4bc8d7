import { inOneTrip } from '../../db/one-trip.ts'
import type { Tx } from '../../db/open.ts'
import { insertCall } from '../../resources/workflows/call-store.ts'
import { callArgs } from '../engine/args.ts'
import { dispatchAsk, dispatchChecks } from './dispatch-waits.ts'
import { refuseCall, rowOf, type NewCall, type StartedStep, type Surroundings } from './new-call.ts'
import { failed, type StepOutcome } from './outcome.ts'
import { startAgentStep } from './start-agent.ts'
import { startCommandStep } from './start-command-step.ts'
import { noAgent } from './step-subject.ts'

/** Writes the call down and does what it asks for, in one transaction. What cannot be done has failed at once. */
export async function dispatchCall(tx: Tx, call: NewCall, surroundings: Surroundings): Promise<void> {
  if (call.kind === 'ask') return dispatchAsk(tx, call, surroundings)
  return call.kind === 'checks' ? dispatchChecks(tx, call, surroundings) : dispatchStep(tx, call, surroundings)
}

async function dispatchStep(
  tx: Tx,
  call: NewCall,
  { run, workspace, calls, subject, context }: Surroundings,
): Promise<void> {
  const now = context.world.now()
  const { seq, kind } = call
  const given = JSON.parse(call.args) as unknown
  const { task, agent, named } = subject!
  const start = async (): Promise<StepOutcome | null> => {
    if (agent === null) return failed(noAgent(named))
    const step: StartedStep = { seq, task, agent, run, workspace, calls, context }
    return kind === 'gate'
      ? startCommandStep(tx, callArgs.gate.parse(given), step)
      : startAgentStep(tx, callArgs.agent.parse(given), step)
  }
  // The call is asked for first, since a run that is declined ends the call.
  const [, refusal] = await inOneTrip(tx, [
    () => insertCall(tx, rowOf(call, run, { agentRef: agent?.id ?? null, at: now })),
    () => call.refusal ?? start(),
  ])
  if (refusal !== null) await refuseCall(tx, run, { seq, at: now, refusal })
}
