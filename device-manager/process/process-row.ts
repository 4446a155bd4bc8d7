/** One process as the system lists it. */
export interface ProcessRow {
  pid: number
  ppid: number
  pgid: number
  /** null where the system does not tell. */
  session: number | null
  /** null where it was not asked for. */
  uid: number | null
  /** First letter of the state: R S D T Z ... */
  state: string
  startTime: string
}

/** A zombie runs nothing and cannot be signalled away: it is gone as far as a run is concerned. */
export function isGone(state: string): boolean {
  return state === 'Z' || state === 'X' || state === 'x'
}

export function isStopped(state: string): boolean {
  return state === 'T' || state === 't'
}
