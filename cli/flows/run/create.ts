import type { CommandContext, Flow } from '../../context.ts'
import { exitStatus } from '../../errors/exit-codes.ts'
import { textAt } from '../../replies/fields.ts'
import { followRun } from '../../http/follow.ts'
import type { Client } from '../../http/client.ts'
import { callOf, printReply } from '../../http/route-call.ts'
import { aboutEnding } from '../../output/run-ending.ts'
import { readWait } from '../wait-flag.ts'

/**
 * `run create`: wakes the agent. With --wait it prints the run at its end and returns how it ended as the exit status.
 */
export const runCreate: Flow = async (context) => {
  const { values, out } = context
  const waitMs = readWait(values)
  const client = await context.connect()
  const { body: wake } = await client.call(callOf(context))
  if (waitMs === null) {
    await printReply(context, wake)
    return 0
  }
  const runId = textAt(wake, 'runPublicId') ?? textAt(wake, 'coalescedIntoRunPublicId')
  if (runId === null) {
    await printReply(context, wake)
    out.message(`svc: no run came of this: ${textAt(wake, 'message') ?? textAt(wake, 'reason') ?? 'not said why'}`)
    return exitStatus('not_started')
  }
  out.message(`svc: waiting for ${runId} (${textAt(wake, 'kind')})`)
  const isInTime = await waitForEnd(context, { client, runId, waitMs })
  const { body: run } = await client.call({
    method: 'GET',
    path: `/api/v1/runs/${runId}`,
    query: { 'expand[]': 'transcriptRead' },
  })
  await printReply(context, run)
  if (!isInTime) {
    const gate = textAt(run, 'gateDescription')
    if (gate !== null) out.message(`svc: it waits: ${gate}`)
    out.message(`svc: ${runId} is still ${textAt(run, 'status')}. Follow it with \`svc run events ${runId} --follow\`.`)
    return exitStatus('wait_timed_out')
  }
  return statusOf(context, run)
}

/** False when the time is over before the run. */
async function waitForEnd(
  { world }: CommandContext,
  { client, runId, waitMs }: { client: Client; runId: string; waitMs: number },
): Promise<boolean> {
  const timeUp = new AbortController()
  const stopTimer = world.after(waitMs, () => timeUp.abort(new Error('the time to wait is over')))
  try {
    await followRun({ client, world, runId, after: null, signal: timeUp.signal, onEvent: () => undefined })
    return true
  } catch (error) {
    if (timeUp.signal.aborted) return false
    throw error
  } finally {
    stopTimer()
  }
}

function statusOf({ out }: CommandContext, run: unknown): number {
  const about = aboutEnding(run)
  if (about !== null) out.message(`svc: ${about}`)
  switch (textAt(run, 'status')) {
    case 'succeeded':
      return exitStatus('ok')
    case 'cancelled':
      return exitStatus('run_cancelled')
    default:
      return exitStatus('run_failed')
  }
}
