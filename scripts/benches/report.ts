import type { Result, Stat } from './measure.ts'

/** One line for a person. */
export function lineOf(result: Result, load: number): string {
  const { goal, name, ratio, ratioP95, target, met, unit, ours, peer, peerIs, note } = result
  const verdict = met === null ? '' : met ? 'OK' : 'MISSED'
  const wanted = target === null ? 'no target' : `goal${goal === null ? '' : ` ${goal}`}: ${target.op} ${target.value}`
  return [
    `${verdict.padEnd(6)} ${name.padEnd(44)} ${short(ratio).padStart(6)} (p95 ${short(ratioP95)}; ${wanted})`,
    `       ours ${figures(ours, unit)}; ${peerIs} ${figures(peer, unit)}; load ${load}${note === undefined ? '' : `; ${note}`}`,
  ].join('\n')
}

const figures = ({ median, p95 }: Stat, unit: string) => `${short(median)} ${unit} (p95 ${short(p95)})`

function short(value: number): string {
  if (!Number.isFinite(value)) return '-'
  return value >= 1000 ? String(Math.round(value)) : value >= 10 ? value.toFixed(1) : value.toFixed(2)
}
