import { cpus, loadavg, totalmem } from 'node:os'
import type { Broken, Row } from './promises.ts'
import type { AbsenceRow } from './returned.ts'

export interface ProofOptions {
  seed: number
  databaseUrl: string | null
  say: (text: string) => void
  /** Ends what is under way before its time; what was proved until then is told. */
  stopped: AbortSignal
}

/** What a proof came to. */
export interface Proof {
  isKept: boolean
  /** The number of runs that were judged. */
  runs: number
  seconds: number
  /** How often each fault struck. */
  faults: Readonly<Record<string, number>>
  rows: readonly Row[]
  broken: readonly Broken[]
  /** Of returns by a moved clock: what was away, for how long. */
  absences?: readonly AbsenceRow[]
}

export const machineFacts = () => ({
  processors: cpus().length,
  memoryGigabytes: Math.round(totalmem() / 2 ** 30),
  platform: `${process.platform} ${process.arch}`,
  node: process.version,
  /** Of the last minute: above the number of processors, other programs made what was measured slower. */
  load: Math.round((loadavg()[0] ?? 0) * 10) / 10,
})

/** As a person reads it: a line for each promise, and the runs that broke one. */
export function tableOf({ seed, faults, rows, broken, runs, seconds }: Proof & { seed: number }): string {
  const total = Object.values(faults).reduce((sum, count) => sum + count, 0)
  const ms = (value: number | null) => (value === null ? '' : `${(value / 1_000).toFixed(2)} s`)
  const cells = [
    ['promise', 'faults met', 'tried', 'wrong', 'p50', 'p95'],
    ...rows.map(({ words, tried, wrong, p50Ms, p95Ms }) => [
      words,
      String(total),
      String(tried),
      String(wrong),
      ms(p50Ms),
      ms(p95Ms),
    ]),
  ]
  const widths = cells[0]!.map((_, column) => Math.max(...cells.map((row) => row[column]!.length)))
  const lines = cells.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join('  ')
      .trimEnd(),
  )
  const struck = Object.entries(faults).map(([name, count]) => `${name} ${count}`)
  const problems = broken.map(({ promise, runId, why }) => `BROKEN ${promise}: ${runId}: ${why}`)
  return `${[...lines, '', `${runs} runs in ${Math.round(seconds)} s; faults: ${struck.join(', ') || 'none'}`, ...problems, ...(problems.length > 0 ? [`The seed was ${seed}.`] : [])].join('\n')}\n`
}
