import { reasoningEfforts } from '../../shared/runs/spec.ts'
import type { World } from '../../shared/lib/world.ts'
import type { Db } from '../db/open.ts'
import type { RunRow } from '../resources/runs/store.ts'
import type { WakeRow } from './wake-store.ts'
import { requestWake } from './wakes.ts'

/** Runs that follow one which was stopped by its provider, and go on with its session. */

const stopped = {
  limit: 'The limit of a provider stopped you in this work.',
  failure: 'The provider of your model failed in the middle of this work.',
}
type Stop = keyof typeof stopped

const keyOf = (stop: Stop, runId: string) => `after_${stop}:${runId}`

/** Asks for the run that follows this one. `prompt`: what this one was asked. */
export async function goOnAfter(
  db: Db,
  run: RunRow,
  { stop, prompt, world }: { stop: Stop; prompt: string | null; world: World },
): Promise<void> {
  await requestWake(
    db,
    {
      workspaceId: run.workspaceId,
      agentId: run.agentId,
      triggerSource: 'manual',
      requestedBy: run.requestedBy,
      // The work is that of the person who caused it, whosever device reported the stop.
      causedBy: run.causedByUserId,
      prompt: `${stopped[stop]} Go on where you stopped, and do nothing twice.\n\nWhat you were asked:\n\n${prompt ?? ''}`,
      taskId: run.taskId,
      conversationId: run.conversationId,
      continues: run.id,
      key: keyOf(stop, run.id),
    },
    world,
  )
}

/** Whether a wake is that of a run which follows one that was stopped. */
export const goesOn = ({ key, continuesRunId: id }: Pick<WakeRow, 'key' | 'continuesRunId'>): boolean =>
  id !== null && (key === keyOf('limit', id) || key === keyOf('failure', id))

/** How a run works that follows one which was stopped so: as that one did, in its place in the line. null: it follows none. */
export function asStopped(stop: Stop, key: string | null, run: RunRow | null) {
  if (run === null || key !== keyOf(stop, run.id)) return null
  const { environmentType: environment, inLineSince, createdAt } = run
  const reasoningEffort = reasoningEfforts.find((effort) => effort === run.reasoningEffort) ?? null
  return {
    run,
    inLineSince: inLineSince ?? createdAt,
    overrides: { environment, reasoningEffort },
  }
}
