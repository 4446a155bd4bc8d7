import { quantile } from './promises.ts'

/** The ends of the classes in which absences are told. */
const classes = [
  { name: 'up to 1 min', mostMs: 60_000 },
  { name: '1 min to 1 h', mostMs: 3_600_000 },
  { name: '1 h to 24 h', mostMs: Infinity },
] as const

export interface AbsenceRow {
  what: string
  away: string
  runs: number
  /** Runs of a device that was silent for an hour: the server gave them up meanwhile. */
  givenUp: number
  /** How long after the return the endings of the others were true; null: all were given up. */
  p50Ms: number | null
  p95Ms: number | null
  mostMs: number | null
}

interface Told {
  silentMs: number
  /** null: it was given up. */
  ms: number | null
}

/** How long after what absence endings were true. */
export class Returned {
  private readonly told = new Map<string, Told[]>()

  add(what: string, told: Told): void {
    this.told.set(what, [...(this.told.get(what) ?? []), told])
  }

  rows(): AbsenceRow[] {
    return [...this.told].flatMap(([what, all]) =>
      classes.flatMap(({ name: away, mostMs }, index) => {
        const leastMs = classes[index - 1]?.mostMs ?? 0
        const these = all.filter(({ silentMs }) => silentMs > leastMs && silentMs <= mostMs)
        if (these.length === 0) return []
        const ms = these.flatMap((each) => each.ms ?? [])
        const [p50Ms, p95Ms, most] = [0.5, 0.95, 1].map((part) => quantile(ms, part))
        const givenUp = these.length - ms.length
        return [
          { what, away, runs: these.length, givenUp, p50Ms: p50Ms ?? null, p95Ms: p95Ms ?? null, mostMs: most ?? null },
        ]
      }),
    )
  }
}
