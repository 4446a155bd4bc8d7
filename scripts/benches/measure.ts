// Numbers of a benchmark: two things measured in turn, and the ratio between them.

export interface Stat {
  median: number
  p95: number
}

export interface Result {
  /** Number of the goal in the list of goals; null: told only. */
  goal: number | null
  name: string
  unit: string
  ours: Stat
  /** Says what the peer is. */
  peerIs: string
  peer: Stat
  /** The middle one of the rounds' ratios of medians, so that a load that comes and goes hits both alike. */
  ratio: number
  /** Ratio of the 95th percentiles over all rounds. */
  ratioP95: number
  target: Target | null
  met: boolean | null
  note?: string
}

export interface Target {
  op: '<=' | '>='
  value: number
}
export const atMost = (value: number): Target => ({ op: '<=', value })
export const atLeast = (value: number): Target => ({ op: '>=', value })

export interface Comparison {
  goal?: number
  name: string
  unit: string
  peerIs: string
  target?: Target
  note?: () => string
  rounds: number
  /** Each returns the samples of one round. */
  ours(round: number): Promise<readonly number[]>
  peer(round: number): Promise<readonly number[]>
}

/** Measures ours and the peer in turn, beginning with the other one in every second round. */
export async function compare(comparison: Comparison): Promise<Result> {
  const { name, unit, peerIs, rounds } = comparison
  const all = { ours: [] as number[], peer: [] as number[] }
  const ratios: number[] = []
  for (let round = 0; round < rounds; round++) {
    const order = round % 2 === 0 ? (['peer', 'ours'] as const) : (['ours', 'peer'] as const)
    const medians = { ours: 0, peer: 0 }
    for (const side of order) {
      const samples = await comparison[side](round)
      all[side].push(...samples)
      medians[side] = quantile(samples, 0.5)
    }
    ratios.push(medians.ours / medians.peer)
  }
  const ours = statOf(all.ours)
  const peer = statOf(all.peer)
  const ratio = quantile(ratios, 0.5)
  const target = comparison.target ?? null
  const note = comparison.note?.()
  return {
    goal: comparison.goal ?? null,
    name,
    unit,
    ours,
    peerIs,
    peer,
    ratio,
    ratioP95: ours.p95 / peer.p95,
    target,
    met: target === null ? null : target.op === '<=' ? ratio <= target.value : ratio >= target.value,
    ...(note === undefined ? {} : { note }),
  }
}

export const statOf = (values: readonly number[]): Stat => ({
  median: quantile(values, 0.5),
  p95: quantile(values, 0.95),
})

export function quantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? Number.NaN
}
