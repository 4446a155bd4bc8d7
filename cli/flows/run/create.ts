import type { CommandContext, Flow } from '../../context/context.ts'
import { exitStatus } from '../../errors/exit-codes.ts'
import { textAt } from '../../replies/fields.ts'
import { followRun } from '../../http/follow.ts'
import type { Client } from '../../calls/client.ts'
import { callOf, printReply } from '../../http/route-call.ts'
import { aboutEnding, exitStatusOf } from '../../output/run-ending.ts'
import { untilInterrupted } from '../../machine/interrupt.ts'
import { readWait } from '../wait-flag.ts'

/**
 * `run create`: wakes the agent. With --wait it prints the run at its end and returns how it ended as the exit status.
 */
export const runCreate: Flow = async (context) => {
  const { values, out } = context
  const waitMs = readWait(values)
  const client = await context.connect()
  const { body: wake } = await client.call(callOf(context))
  const runId = textAt(wake, 'runPublicId') ?? textAt(wake, 'coalescedIntoRunPublicId')
  if (waitMs === null || runId === null) return printWake(context, wake)
  if (out.format !== 'json') return (await import('./watch.ts')).watchRun(context, { client, runId, waitMs })
  out.message(`svc: waiting for ${runId} (${textAt(wake, 'kind')})`)
  await tellGate(context, { client, runId })
  const isInTime = await waitForEnd(context, { client, runId, waitMs })
  const { body: run } = await client.call({
    method: 'GET',
    path: `/api/v1/runs/${runId}`,
    query: { 'expand[]': 'transcriptRead' },
  })
  await printReply(context, run, 'RunDetail')
  if (!isInTime) {
    const gate = textAt(run, 'gateDescription')
    if (gate !== null) out.message(`svc: it waits: ${gate}`)
    out.message(`svc: ${runId} is still ${textAt(run, 'status')}. Follow it with \`svc run watch ${runId}\`.`)
    return exitStatus('wait_timed_out')
  }
  const about = aboutEnding(run)
  if (about !== null) out.message(`svc: ${about}`)
  return exitStatusOf(run)
}

/** `agent run`: wakes the agent. */
export const agentRun: Flow = async (context) => {
  const client = await context.connect()
  return printWake(context, (await client.call(callOf(context))).body)
}

/** Prints what the wake became, and says so where that is no run. */
async function printWake(context: CommandContext, wake: unknown): Promise<number> {
  await printReply(context, wake)
  if (textAt(wake, 'kind') !== 'not_dispatched') return exitStatus('ok')
  const why = textAt(wake, 'message') ?? textAt(wake, 'reason') ?? 'not said why'
  context.out.message(`svc: no run came of this: ${why}`)
  return exitStatus('not_started')
}

/** Says at once why a run that was made does not begin yet. */
async function tellGate({ out }: CommandContext, { client, runId }: { client: Client; runId: string }): Promise<void> {
  const { body: run } = await client.call({ method: 'GET', path: `/api/v1/runs/${runId}` })
  const gate = textAt(run, 'gateDescription')
  if (gate !== null) out.message(`svc: it waits: ${gate}`)
}

/** False when the time is over before the run. Ctrl-C ends svc, and not the run. */
async function waitForEnd(
  { world, out }: CommandContext,
  { client, runId, waitMs }: { client: Client; runId: string; waitMs: number },
): Promise<boolean> {
  const timeUp = new AbortController()
  const sayLast = () =>
    out.message(
      `svc: ${runId} goes on. Follow it with \`svc run watch ${runId}\`, stop it with \`svc run cancel ${runId}\`.`,
    )
  const stopTimer = world.after(waitMs, () => timeUp.abort(new Error('the time to wait is over')))
  try {
    const { signal } = timeUp
    await untilInterrupted(sayLast, () =>
      followRun({ client, world, runId, after: null, signal, onEvent: () => undefined }),
    )
    return true
  } catch (error) {
    if (timeUp.signal.aborted) return false
    throw error
  } finally {
    stopTimer()
  }
}
