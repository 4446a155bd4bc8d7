import { totalmem } from 'node:os'

/** Runs that come within this time of each other are a burst: all but the first would wait for a host that is still starting. */
const togetherMs = 3_000
/** A burst is expected again for so long; then one host stands by. */
const rememberMs = 2 * 60_000
/** What a host that stands by has of memory for itself alone, in bytes; 54 to 60 MiB were measured on Linux. */
const hostBytes = 64 * 2 ** 20
/** The part of the machine's memory that hosts which stand by may have, and the most, in bytes. */
const memoryPart = 1 / 64
const mostBytes = 512 * 2 ** 20

/**
 * How many run hosts should stand by: as many as runs came at one moment lately, so that the next such moment finds them started. One
 * stands by at any time, whatever memory the machine has (docs/adr/0096).
 */
export class HostDemand {
  private readonly most: number
  /** When runs took a host, oldest first, each within the time that is remembered. */
  private readonly taken: number[] = []

  /** `memory`: of the machine, in bytes. */
  constructor({ memory }: { memory: number }) {
    this.most = Math.max(1, Math.floor(Math.min(memory * memoryPart, mostBytes) / hostBytes))
  }

  /** A run took a host, or wanted one. `at`: monotonic, in milliseconds. */
  note(at: number): void {
    this.forget(at)
    this.taken.push(at)
  }

  /** Returns how many should stand by now. `room`: the places for runs that are left on the device. */
  wanted(at: number, { room }: { room: number }): number {
    this.forget(at)
    return Math.max(1, Math.min(this.busiest(), room, this.most))
  }

  /** Returns the milliseconds until fewer may be wanted; null: nothing is remembered. */
  changesIn(at: number): number | null {
    this.forget(at)
    const [oldest] = this.taken
    return oldest === undefined ? null : oldest + rememberMs - at
  }

  /** The most runs that came together. */
  private busiest(): number {
    let most = 0
    let first = 0
    for (let last = 0; last < this.taken.length; last++) {
      while ((this.taken[last] ?? 0) - (this.taken[first] ?? 0) > togetherMs) first++
      most = Math.max(most, last - first + 1)
    }
    return most
  }

  private forget(at: number): void {
    while (this.taken[0] !== undefined && this.taken[0] + rememberMs <= at) this.taken.shift()
  }
}

/** Returns the memory of the machine, or of the container that this process is in, in bytes. */
export function usableMemory(): number {
  const limit = process.constrainedMemory()
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem()
}
