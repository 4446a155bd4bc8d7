import type { WorkspaceUuid } from '../../shared/lib/ids.ts'
import { FairQueue, type QueuedItem } from '../process/fair-queue.ts'
import { SourceError } from './source-error.ts'

/**
 * Says how many repositories are fetched at the same time: of all, and of one workspace. Others wait for their turn, workspace by
 * workspace; where too many wait already, the next is refused.
 */
export interface PlaceLimits {
  atOnce: number
  perWorkspace: number
  /** Of one workspace. */
  waiting: number
}

interface Waiting extends QueuedItem {
  begin: () => void
}

export class FetchPlaces {
  private readonly limits: PlaceLimits
  private readonly waiting = new FairQueue<Waiting>()
  private readonly atWork = new Map<string, number>()
  private taken = 0

  constructor(limits: PlaceLimits) {
    this.limits = limits
  }

  /** Fails with SourceError `busy`, or with the reason of the signal. */
  async within<T>(workspaceId: WorkspaceUuid, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    await this.take(workspaceId, signal)
    try {
      return await work()
    } finally {
      this.taken--
      this.atWork.set(workspaceId, this.atWorkOf(workspaceId) - 1)
      if (this.atWorkOf(workspaceId) === 0) this.atWork.delete(workspaceId)
      this.fill()
    }
  }

  private take(workspaceId: WorkspaceUuid, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    if (this.waiting.countOf(workspaceId) >= this.limits.waiting)
      throw new SourceError('busy', 'Too many repositories of this workspace are being read. Try again in a minute.')
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const leave = () => {
      if (this.waiting.remove(item)) reject(signal.reason)
    }
    const item: Waiting = {
      group: workspaceId,
      member: workspaceId,
      begin: () => {
        signal.removeEventListener('abort', leave)
        resolve()
      },
    }
    signal.addEventListener('abort', leave, { once: true })
    this.waiting.add(item)
    this.fill()
    return promise
  }

  private fill(): void {
    while (this.taken < this.limits.atOnce) {
      const next = this.waiting.take(({ group }) => this.atWorkOf(group) < this.limits.perWorkspace)
      if (next === null) return
      this.taken++
      this.atWork.set(next.group, this.atWorkOf(next.group) + 1)
      next.begin()
    }
  }

  private atWorkOf(workspaceId: string): number {
    return this.atWork.get(workspaceId) ?? 0
  }
}
