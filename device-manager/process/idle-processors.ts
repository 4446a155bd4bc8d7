import { availableParallelism, cpus, type CpuInfo } from 'node:os'
import type { World } from '../../shared/lib/world.ts'

/** With more processors than these, work on the side takes nothing from what a person waits for. */
const fewProcessors = 4

const lookMs = 1_000
const atLatestMs = 12_000

/**
 * For work beside what a person waits for: some harnesses take all of one processor and half of the next for seconds
 * until they begin. Where there are few processors, `act` is called once one of them (half of one, if there is no other)
 * was idle from one look to the next, the first of which comes after `afterMs.few`; after 12 s it is called in any case.
 * Where there are many it is called after `afterMs.many`. Returns how to cancel it.
 */
export function whenIdle(
  world: Pick<World, 'after' | 'monotonic'>,
  afterMs: { few: number; many: number },
  act: () => void,
  // In a container those that may be used are fewer than those that are looked at; what is idle says little there.
  { count, look }: { count: number; look: () => Times[] } = { count: availableParallelism(), look: cpus },
): () => void {
  if (count > fewProcessors) return world.after(afterMs.many, act)
  const until = world.monotonic() + atLatestMs
  const wait = (ms: number): (() => void) => {
    const before = look()
    return world.after(ms, () => {
      const isIdle = idleProcessors(before, look()) >= Math.min(1, count / 2)
      if (isIdle || world.monotonic() >= until) act()
      else cancel = wait(lookMs)
    })
  }
  let cancel = wait(afterMs.few)
  return () => cancel()
}

type Times = Pick<CpuInfo, 'times'>

/**
 * How many processors were idle between two looks at all of them (`os.cpus()`), as a fraction: 0.5 is one that was idle
 * half of the time. 0 where no time went by, or where the system does not say.
 */
export function idleProcessors(before: readonly Times[], after: readonly Times[]): number {
  const spent = total(after) - total(before)
  return spent <= 0 ? 0 : ((idle(after) - idle(before)) / spent) * after.length
}

const idle = (processors: readonly Times[]): number => sum(processors.map(({ times }) => times.idle))
const total = (processors: readonly Times[]): number =>
  sum(processors.flatMap(({ times }) => [times.user, times.nice, times.sys, times.idle, times.irq]))
const sum = (numbers: readonly number[]): number => numbers.reduce((all, each) => all + each, 0)
