import { ApiError } from '../../shared/api/errors.ts'
import { mebibyte } from '../../shared/api/route.ts'
import type { World } from '../../shared/lib/world.ts'
import { FairQueue } from '../process/fair-queue.ts'

/**
 * Room in memory for large bodies, and for large answers, that are under way at the same time: who finds none waits, unread, until others have
 * given theirs back. Owners take turns; none has more than half of it, and a group no more than three quarters, also
 * while nobody else waits: who comes next finds room at once. What is read is given a time, so that nobody keeps room by
 * sending slowly.
 *
 *     waiting --room--> holding --release--> gone
 *        |-- too long, too many (429); the sender is gone --> gone
 */
export interface RoomLimits {
  bytes: number
  /** Bodies over 1 MiB that are there at once: each has such a part of the room at least. Left out: as many as fit. */
  places?: number
  /** Bodies of one owner that may wait. */
  waitingPerOwner: number
  waitMs: number
}

export interface RoomOwner {
  /** The group, for example a workspace; owners of one group share its turn and its part of the room. */
  group: string
  member: string
}

const memberShare = 1 / 2
const groupShare = 3 / 4

interface Waiting extends RoomOwner {
  bytes: number
  begin: () => void
  refuse: () => void
}

export type Release = () => void

export class BodyRoom {
  private readonly world: World
  private readonly limits: RoomLimits
  private readonly queue = new FairQueue<Waiting>()
  private readonly heldByMember = new Map<string, number>()
  private readonly heldByGroup = new Map<string, number>()
  private held = 0
  private lastTurn: Promise<void> = Promise.resolve()

  constructor(world: World, limits: RoomLimits) {
    this.world = world
    this.limits = limits
  }

  /** Resolves once there is room; to be released in any case. Fails with `rate_limit_exceeded`, also when `gone` is aborted. */
  async take(length: number, owner: RoomOwner, gone: AbortSignal): Promise<Release> {
    const { places } = this.limits
    const bytes = places === undefined || length <= mebibyte ? length : Math.max(length, this.limits.bytes / places)
    if (gone.aborted || this.queue.countOf(owner.member) >= this.limits.waitingPerOwner) throw refusal()
    await new Promise<void>((resolve, reject) => {
      const leave = () => {
        stopTimer()
        gone.removeEventListener('abort', giveUp)
      }
      const waiting: Waiting = {
        ...owner,
        bytes,
        begin: () => {
          leave()
          resolve()
        },
        refuse: () => {
          leave()
          reject(refusal())
        },
      }
      const giveUp = () => {
        if (this.queue.remove(waiting)) waiting.refuse()
      }
      const stopTimer = this.world.after(this.limits.waitMs, giveUp)
      gone.addEventListener('abort', giveUp, { once: true })
      this.queue.add(waiting)
      this.next()
    })
    return this.releaseOf(bytes, owner)
  }

  /** Resolves in a turn of the event loop that no other large body has: whatever each costs, others come in between. */
  yieldToLoop(): Promise<void> {
    this.lastTurn = this.lastTurn.then(() => new Promise((resolve) => setImmediate(resolve)))
    return this.lastTurn
  }

  get heldBytes(): number {
    return this.held
  }

  private releaseOf(bytes: number, owner: RoomOwner): Release {
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      this.count(owner, -bytes)
      this.next()
    }
  }

  private next(): void {
    for (;;) {
      // A body that waits for room, or for that of its group, holds up those behind it: else a large one would never find enough.
      let isFull = false
      const fullGroups = new Set<string>()
      const waiting = this.queue.take((one) => {
        if (isFull || fullGroups.has(one.group)) return false
        if (isOver(this.heldByMember.get(one.member), one, this.limits.bytes * memberShare)) return false
        if (isOver(this.heldByGroup.get(one.group), one, this.limits.bytes * groupShare)) {
          fullGroups.add(one.group)
          return false
        }
        // A body larger than the room has it alone.
        isFull = this.held > 0 && this.held + one.bytes > this.limits.bytes
        return !isFull
      })
      if (waiting === null) return
      this.count(waiting, waiting.bytes)
      waiting.begin()
    }
  }

  private count({ group, member }: RoomOwner, bytes: number): void {
    this.held += bytes
    addTo(this.heldByMember, member, bytes)
    addTo(this.heldByGroup, group, bytes)
  }
}

/** Tells whether the owner would hold more than its share. An owner that holds nothing may have one body that is larger. */
const isOver = (held = 0, { bytes }: Waiting, share: number): boolean => held > 0 && held + bytes > share

function addTo(held: Map<string, number>, key: string, bytes: number): void {
  const sum = (held.get(key) ?? 0) + bytes
  if (sum === 0) held.delete(key)
  else held.set(key, sum)
}

const refusal = () =>
  new ApiError('rate_limit_exceeded', {
    message: 'Too much is being sent or read at the same time. Try again.',
    details: { retryAfter: 5 },
    headers: { 'Retry-After': '5' },
  })

/** Bodies of callers that are known, and of those that nobody knows before the body is read (webhooks). */
export interface BodyRooms {
  known: BodyRoom
  /** Bodies of routes that take more than all of that room. */
  bundles: BodyRoom
  /** Messages of MCP. While one is worked on, its request to the API takes another room. */
  messages: BodyRoom
  /** Bodies of known callers that are stored as they come: what is in memory of each, however large it is. */
  streamed: BodyRoom
  strangers: BodyRoom
  /** Bytes that were read for answers and for streams and are not sent yet. */
  answers: BodyRoom
  /** Bytes of files and of skills on their way to readers that may be slow. */
  downloads: BodyRoom
}

/** A route that takes larger bodies than this has the room for bundles, so that those hold up no others. */
export const knownBytes = 16 * mebibyte

export function createBodyRooms(world: World): BodyRooms {
  return {
    known: new BodyRoom(world, { bytes: knownBytes, waitingPerOwner: 100, waitMs: 30_000 }),
    bundles: new BodyRoom(world, { bytes: 48 * mebibyte, places: 4, waitingPerOwner: 20, waitMs: 60_000 }),
    messages: new BodyRoom(world, { bytes: 48 * mebibyte, places: 4, waitingPerOwner: 20, waitMs: 60_000 }),
    streamed: new BodyRoom(world, { bytes: 32 * mebibyte, waitingPerOwner: 100, waitMs: 60_000 }),
    answers: new BodyRoom(world, { bytes: 32 * mebibyte, waitingPerOwner: 200, waitMs: 60_000 }),
    // The server lets at most 64 downloads run at once, of which a device has 32.
    downloads: new BodyRoom(world, { bytes: 16 * mebibyte, waitingPerOwner: 20, waitMs: 10_000 }),
    strangers: new BodyRoom(world, { bytes: 4 * mebibyte, waitingPerOwner: 20, waitMs: 10_000 }),
  }
}
