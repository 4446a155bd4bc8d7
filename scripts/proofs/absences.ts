import type { Absent } from '../../test/kit/faults.ts'

/** A time in which something was away, in milliseconds since 1970; `to` is null as long as it is. */
export interface Absence {
  what: Absent | 'state'
  from: number
  to: number | null
}

/** Without these an ending cannot be told. */
const carriers = new Set<Absence['what']>(['link', 'server', 'daemon'])

/** Remembers what was away when. */
export class Absences {
  private readonly all: Absence[] = []

  begin(what: Absence['what'], from = Date.now()): () => void {
    const absence: Absence = { what, from, to: null }
    this.all.push(absence)
    return () => void (absence.to = Date.now())
  }

  /** Says whether it was away at any moment of that time. */
  met(what: Absence['what'], time: { from: number; to: number }): boolean {
    return this.all.some((each) => each.what === what && overlaps(each, time))
  }

  /**
   * How long an ending took from the return of what carries it. The harness ended at `from`, and that was told at `to`; null:
   * nothing was away between. Where several things were away, the last one to return counts.
   */
  returnMs(time: { from: number; to: number }): number | null {
    const returns = this.all.flatMap((each) =>
      carriers.has(each.what) && overlaps(each, time) ? [each.to ?? time.to] : [],
    )
    return returns.length === 0 ? null : Math.max(0, time.to - Math.max(...returns))
  }
}

const overlaps = ({ from, to }: Absence, time: { from: number; to: number }) =>
  from <= time.to && (to === null || to >= time.from)
