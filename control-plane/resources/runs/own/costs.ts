import type { Cost, CostGrouping } from '../../../../shared/api/costs.ts'
import { fromNanoUsd, toNanoUsd } from '../../../catalog/price.ts'
import type { CostRow } from './cost-store.ts'

type Spent = Pick<Cost, 'inputTokens' | 'outputTokens' | 'cacheReadTokens' | 'cacheWriteTokens' | 'durationMs'>
type Sums = Omit<Cost, 'id' | 'name'>

/** Returns what is known of a run beside its money. One that works has taken the time until now. */
export function spentBy(
  { usage, startedAt, endedAt }: Pick<CostRow, 'usage' | 'startedAt' | 'endedAt'>,
  now: number,
): Spent {
  return {
    inputTokens: usage?.inputTokens ?? 0,
    outputTokens: usage?.outputTokens ?? 0,
    cacheReadTokens: usage?.cacheReadTokens ?? 0,
    cacheWriteTokens: usage?.cacheWriteTokens ?? 0,
    durationMs: startedAt === null ? 0 : Math.max(0, (endedAt ?? now) - startedAt),
  }
}

interface Group {
  id: string | null
  name: string
  nanoUsd: bigint
  runs: number
  known: number
  spent: Spent
}

/** Adds runs up in groups. Money is added in billionths of a dollar, so that sums are exact; what is not known is counted apart. */
export class CostTally {
  private readonly by: CostGrouping
  private readonly dayOf: (at: number) => string
  private readonly groups = new Map<string | null, Group>()
  private readonly all = newGroup(null, '')
  private readonly now: number

  constructor(by: CostGrouping, { timezone, now }: { timezone: string; now: number }) {
    this.by = by
    this.now = now
    // The Swedish form of a date is that of ISO 8601.
    const day = new Intl.DateTimeFormat('sv-SE', { timeZone: timezone, dateStyle: 'short' })
    this.dayOf = (at) => day.format(at)
  }

  add(run: CostRow): void {
    const { id, name } = this.placeOf(run)
    const group = this.groups.get(id) ?? newGroup(id, name)
    this.groups.set(id, group)
    for (const each of [group, this.all]) addTo(each, run, this.now)
  }

  get total(): Sums {
    return sumsOf(this.all)
  }

  /** The dearest first, and those of which nothing is known last; days newest first. */
  costs(): Cost[] {
    const days = (one: Group, other: Group) => ((one.id ?? '') < (other.id ?? '') ? 1 : -1)
    const dearest = (one: Group, other: Group) =>
      one.nanoUsd === other.nanoUsd ? other.runs - one.runs : one.nanoUsd < other.nanoUsd ? 1 : -1
    return [...this.groups.values()]
      .toSorted(this.by === 'day' ? days : dearest)
      .map((group) => ({ id: group.id, name: group.name, ...sumsOf(group) }))
  }

  /** Names of agents and projects are looked up once it is known which are shown. */
  private placeOf(run: CostRow): { id: string | null; name: string } {
    if (this.by === 'agent') return { id: run.agentRef, name: run.agentRef }
    if (this.by === 'day') return { id: this.dayOf(run.createdAt), name: this.dayOf(run.createdAt) }
    if (this.by === 'project') return { id: run.projectUuid, name: run.projectUuid ?? 'no project' }
    return {
      id: run.taskId,
      name: run.taskId === null ? 'no task' : `${run.taskKey ?? run.taskId} ${run.taskTitle ?? ''}`.trim(),
    }
  }
}

const newGroup = (id: string | null, name: string): Group => ({
  id,
  name,
  nanoUsd: 0n,
  runs: 0,
  known: 0,
  spent: { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, durationMs: 0 },
})

function addTo(group: Group, run: CostRow, now: number): void {
  group.runs++
  if (run.costUsd !== null) {
    group.known++
    group.nanoUsd += toNanoUsd(run.costUsd)
  }
  const spent = spentBy(run, now)
  for (const key of Object.keys(spent) as (keyof Spent)[]) group.spent[key] += spent[key]
}

const sumsOf = ({ runs, known, nanoUsd, spent }: Group): Sums => ({
  runs,
  runsWithoutCost: runs - known,
  costUsd: known === 0 ? null : fromNanoUsd(nanoUsd),
  ...spent,
})
