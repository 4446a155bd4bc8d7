// What svc promises, and the account of how often each promise was tried and broken. docs/guarantees.md says what each one means.

export const promises = {
  events: 'no event lost undeclared',
  starts: 'no harness started twice',
  ending: 'one ending',
  truth: 'an ending that is true 5 s after the return',
  changes: 'a change-set that is whole',
  gates: 'a gate that no crash opens',
} as const
export type PromiseName = keyof typeof promises
export const promiseNames = Object.keys(promises) as PromiseName[]

export interface Broken {
  promise: PromiseName
  runId: string
  why: string
}

/** The time in which an ending has to be true. */
export const trueWithinMs = 5_000
/** Fewer returns say nothing about the slowest twentieth of them. */
const fewReturns = 20

export interface Row {
  promise: PromiseName
  words: string
  tried: number
  wrong: number
  /** How long after the return endings were true; null: none was measured. */
  p50Ms: number | null
  p95Ms: number | null
}

export class Account {
  readonly broken: Broken[] = []
  private readonly counts = new Map<PromiseName, number>()
  private readonly returnsMs: number[] = []
  private readonly met = new Map<string, number>()

  tried(promise: PromiseName): void {
    this.counts.set(promise, (this.counts.get(promise) ?? 0) + 1)
  }

  add(broken: readonly Broken[]): void {
    this.broken.push(...broken)
  }

  returned(ms: number): void {
    this.returnsMs.push(ms)
  }

  meets(fault: string): void {
    this.met.set(fault, (this.met.get(fault) ?? 0) + 1)
  }

  get faults(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.met].toSorted(([a], [b]) => a.localeCompare(b)))
  }

  /** The number of endings that came while something was away. */
  get returns(): number {
    return this.returnsMs.length
  }

  rows(): Row[] {
    return promiseNames.map((promise) => {
      const isTimed = promise === 'truth'
      return {
        promise,
        words: promises[promise],
        tried: this.counts.get(promise) ?? 0,
        wrong: this.broken.filter((each) => each.promise === promise).length,
        p50Ms: isTimed ? quantile(this.returnsMs, 0.5) : null,
        p95Ms: isTimed ? quantile(this.returnsMs, 0.95) : null,
      }
    })
  }

  /** Says whether every promise was kept. */
  isKept(): boolean {
    return this.broken.length === 0 && !this.isLate()
  }

  /** Says whether more than one ending in twenty was true too late. */
  isLate(): boolean {
    const p95 = quantile(this.returnsMs, 0.95)
    return p95 !== null && this.returnsMs.length >= fewReturns && p95 > trueWithinMs
  }
}

export function quantile(values: readonly number[], part: number): number | null {
  const sorted = values.toSorted((a, b) => a - b)
  const at = Math.min(sorted.length - 1, Math.ceil(sorted.length * part) - 1)
  return sorted.length === 0 ? null : Math.round(sorted[Math.max(0, at)]!)
}
