import type { Delivered } from '../clone/job.ts'
import { deliverMs, deliverWork } from '../clone/run-job.ts'
import { errorEvent } from '../harness/parts/error-event.ts'
import type { RunEventBody } from '../../shared/runs/events.ts'
import type { ExitReason } from '../../shared/runs/exit-reasons.ts'

/** Returns the events in which a run tells of work that is not on its branch. */
export function deliveryEvents(delivered: Delivered | null): RunEventBody[] {
  const { rescued, lost } = delivered ?? { rescued: null, lost: null }
  return [
    ...(rescued === null ? [] : [errorEvent('work_rescued', rescued.why)]),
    ...(lost === null ? [] : [errorEvent('work_lost', lost)]),
  ]
}

/** A run of which work is lost has not done what it was for; the loss is told with its end. */
export function withDelivery<Ended extends { exitReason: ExitReason; message: string | null }>(
  ended: Ended,
  delivered: Delivered | null,
): Ended {
  const told = [ended.message, delivered?.rescued?.why, delivered?.lost].filter((text) => text != null)
  if (told.length === 0 || delivered === null) return ended
  const isLost = delivered.lost !== null && ended.exitReason === 'completed'
  return { ...ended, message: told.join(' '), ...(isLost && { exitReason: 'error' as const }) }
}

/** Pushes what a run did, once nothing of it works in its clone any more. */
export async function deliverRun(
  spec: Parameters<typeof deliverWork>[0],
  emit: (events: RunEventBody[]) => void,
): Promise<Delivered | null> {
  const delivered = await deliverWork(spec, deliverMs)
  emit(deliveryEvents(delivered))
  return delivered
}
