import type { RunId } from '../../../shared/lib/ids.ts'
import { encodeCursor } from '../../../shared/lib/cursor.ts'
import type { World } from '../../../shared/lib/world.ts'
import type { Db } from '../../db/open.ts'
import { linkLimits } from '../../../shared/device/limits.ts'
import type { AnswerRoom } from '../../http/answer-room.ts'
import type { StreamMessage } from '../../http/sse.ts'
import type { Bus } from '../../db/bus.ts'
import { listEvents } from './event-log.ts'
import { findRun } from './store.ts'

export interface FollowOptions {
  /** The root handle: the stream outlives every transaction. */
  db: Db
  bus: Pick<Bus, 'on' | 'onSignal'>
  world: World
  signal: AbortSignal
  room: Pick<AnswerRoom, 'takeFor'>
  runId: RunId
  afterSeq: number
}

const eventsAtOnce = 500
/** Events are read in parts of this size, so that a reader who takes none keeps little. */
const partBytes = linkLimits.lineBytes
/** A follower that heard nothing looks again by itself: a wake-up between replicas may be lost. */
const lookAgainMs = 5_000

/**
 * Events of a run as they are stored, then one message `end` when the run ended and all was sent. The log is the truth and
 * signals only wake: a follower on a replica without the run's link reads the same frames.
 */
export async function* followRun(options: FollowOptions): AsyncGenerator<StreamMessage> {
  const { db, runId } = options
  const doorbell = openDoorbell(options)
  let seq = options.afterSeq
  /** Bytes of the log up to where it was read to its end; all of it may be new before that. */
  let readBytes = 0
  try {
    while (!options.signal.aborted) {
      doorbell.clear()
      // The run is read before the events: no event is stored after the ending, so those read next are all there are.
      const run = await findRun(db, runId)
      const newBytes = run === null ? 0 : run.eventBytes - readBytes
      const release = await options.room.takeFor(Math.min(newBytes, partBytes), (ms) => options.world.sleep(ms))
      if (release === null) return
      const isOver = run === null || run.endedAt !== null
      let isHeld = false
      let hasMore = false
      try {
        const page = await listEvents(db, { runId, afterSeq: seq, limit: eventsAtOnce, mostBytes: partBytes })
        hasMore = page.hasMore
        for (const event of page.events) {
          // A reader of the last event may look at the run next and must find it ended; its ending is stored a moment later.
          isHeld = event.kind === 'ended' && !isOver
          if (isHeld) break
          seq = event.seq
          yield { id: encodeCursor([seq]), event: event.kind, data: event }
        }
      } finally {
        release()
      }
      if (!hasMore) readBytes = run?.eventBytes ?? 0
      // A device may claim an ending in the middle of its log: what is held is not asked for again at once.
      if (hasMore && !isHeld) continue
      if (isOver) {
        const data = { runId, status: run?.status ?? null, exitReason: run?.exitReason ?? null, lastSeq: seq }
        yield { id: encodeCursor([seq]), event: 'end', data }
        return
      }
      await doorbell.rung()
    }
  } finally {
    doorbell.close()
  }
}

/** Rings when the run's log grew, the run ended, the reader is gone, or nothing was heard for a while. */
function openDoorbell({ bus, world, signal, runId }: FollowOptions) {
  let isRung = false
  let wake = () => {}
  const ring = () => {
    isRung = true
    wake()
  }
  const close = [
    bus.onSignal(`run:${runId}`, ring),
    // A run that the control plane ended by itself has no last frame.
    bus.on('run.ended', (row) => {
      if (row.key === runId) ring()
    }),
    () => signal.removeEventListener('abort', ring),
  ]
  signal.addEventListener('abort', ring, { once: true })
  return {
    clear: () => void (isRung = false),
    async rung() {
      if (isRung || signal.aborted) return
      await new Promise<void>((resolve) => {
        const cancel = world.after(lookAgainMs, resolve)
        wake = () => {
          cancel()
          resolve()
        }
      })
    },
    close: () => {
      for (const off of close) off()
    },
  }
}
