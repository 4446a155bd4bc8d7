import { setImmediate as nextTurn, setTimeout } from 'node:timers/promises'
import { isSystemTrouble } from './system-trouble.ts'
import { processesInCgroup } from './cgroup.ts'
import type { ProcessIdentity } from './identity.ts'
import { environReader, listPids, statReader, isGone, type ProcessRow } from './proc.ts'
import { readPs } from './ps.ts'

/** Stands in the environment of the harness and so, unless it was cleared, of all that it starts. */
export const markName = 'SVC_RUN_ID'

export interface RunSearch {
  runId: string
  /** Processes known to be the run's: its leader, and what an earlier search found. They may be gone. */
  roots: readonly ProcessIdentity[]
  cgroup: string | null
  /**
   * Start time of the run's very first process, where it is known. What was started before carries no mark of the run, so
   * its environment is not read.
   */
  since?: string | null
  /** Never part of the answer: the daemon and the run host. This process and pid 1 never are. */
  exclude: readonly number[]
  /**
   * Sessions or groups (by number) that the caller knows to be the run's although their leader may be gone: it saw the
   * leader exit a moment ago. After a restart this cannot be known, the number may have come to someone else.
   */
  ownGroups?: readonly number[]
}

export interface RunProcesses {
  /** Live processes of the run, newest first. */
  own: ProcessRow[]
  /** Process groups in which only they are. */
  groups: number[]
}

/** A system without a file left may have one again: how often it is asked, and after how long. */
const searchTries = 20
const searchAgainMs = 250

/**
 * All live processes that belong to the run: by its cgroup, by the mark in their environment, by descent from `roots`, and
 * by a session or group that one of these leads. Where there is no /proc the mark is looked for in what `ps` shows. The
 * search gives way to other work in between. `onMarked` is called for each process at the moment its mark is seen: in
 * a chain of short-lived processes the one found now is gone when the search is over.
 */
export async function findProcessesOfRun(
  search: RunSearch,
  onMarked?: (row: ProcessRow) => void,
): Promise<RunProcesses> {
  for (let tried = 1; ; tried++) {
    try {
      const steps = searchSteps(search, onMarked)
      for (;;) {
        const step = steps.next()
        if (step.done === true) return step.value
        await nextTurn()
      }
    } catch (error) {
      if (!isSystemTrouble(error) || tried === searchTries) throw error
      await setTimeout(searchAgainMs)
    }
  }
}

const rowsPerStep = 50
const maxRounds = 20

function* searchSteps(search: RunSearch, onMarked?: (row: ProcessRow) => void): Generator<void, RunProcesses> {
  const excluded = new Set([1, process.pid, ...search.exclude])
  const table = yield* process.platform === 'linux'
    ? readProcTable(search, excluded, onMarked)
    : readPsTable(search.runId, excluded, onMarked)
  const own = runMembers(table.rows, { ...search, excluded, marked: table.marked })
  return { own, groups: groupsOf(own, table.rows) }
}

interface Table {
  rows: Map<number, ProcessRow>
  marked: Set<number>
}

function* readProcTable(
  { runId, since }: Pick<RunSearch, 'runId' | 'since'>,
  excluded: ReadonlySet<number>,
  onMarked?: (row: ProcessRow) => void,
): Generator<void, Table> {
  const table: Table = { rows: new Map(), marked: new Set() }
  const environ = environReader()
  const readStat = statReader()
  const earliest = Number(since ?? 0)
  const seen = new Set<number>()
  // Processes that were started during the search are looked at too: one that forks and exits again and again is
  // else between the lists each time. The later rounds are short.
  for (let round = 0; round < maxRounds; round++) {
    const fresh = listPids().filter((pid) => !seen.has(pid))
    if (fresh.length === 0) break
    for (const [i, pid] of fresh.entries()) {
      if (i % rowsPerStep === rowsPerStep - 1) yield
      seen.add(pid)
      const row = readStat(pid)
      if (row === null) continue
      table.rows.set(pid, row)
      if (isGone(row.state) || excluded.has(pid) || Number(row.startTime) < earliest) continue
      if (!environ.holds(pid, `${markName}=${runId}`)) continue
      table.marked.add(pid)
      onMarked?.(row)
    }
  }
  return table
}

function* readPsTable(
  runId: string,
  excluded: ReadonlySet<number>,
  onMarked?: (row: ProcessRow) => void,
): Generator<void, Table> {
  const table: Table = { rows: new Map(), marked: new Set() }
  for (const row of readPs('bsd')) {
    table.rows.set(row.pid, row)
    if (isGone(row.state) || excluded.has(row.pid) || !` ${row.command} `.includes(` ${markName}=${runId} `)) continue
    table.marked.add(row.pid)
    onMarked?.(row)
  }
  yield
  return table
}

interface Evidence extends RunSearch {
  excluded: ReadonlySet<number>
  marked: ReadonlySet<number>
}

/** Pure: which rows are the run's. Exported for its test. */
export function runMembers(rows: ReadonlyMap<number, ProcessRow>, evidence: Evidence): ProcessRow[] {
  const { excluded } = evidence
  const roots = new Map(evidence.roots.map((root) => [root.pid, root.startTime]))
  const inCgroup = evidence.cgroup === null ? [] : processesInCgroup(evidence.cgroup)
  const near = neighbours(rows)
  const members = new Set<ProcessRow>()
  const queue: ProcessRow[] = []
  const add = (row: ProcessRow | undefined) => {
    if (row === undefined || excluded.has(row.pid) || members.has(row)) return
    members.add(row)
    queue.push(row)
  }
  // A number is not given to a new process while a group or session still has it. So a group is the run's when a member
  // of the run is in it and one of the run's processes, live or gone, has that number.
  const isLedByRun = (number: number) => {
    const holder = rows.get(number)
    if (holder !== undefined && members.has(holder)) return true
    const startTime = roots.get(number)
    return startTime !== undefined && (holder === undefined || holder.startTime === startTime)
  }
  for (const [pid, startTime] of roots) if (rows.get(pid)?.startTime === startTime) add(rows.get(pid))
  for (const pid of [...evidence.marked, ...inCgroup]) add(rows.get(pid))
  for (const number of evidence.ownGroups ?? []) {
    if (isLedByRun(number)) for (const row of near.inGroup(number)) add(row)
  }
  for (let row = queue.pop(); row !== undefined; row = queue.pop()) {
    for (const child of near.childrenOf(row.pid)) add(child)
    for (const number of new Set([row.pgid, row.session])) {
      if (number !== null && isLedByRun(number)) for (const fellow of near.inGroup(number)) add(fellow)
    }
  }
  return [...members].filter((row) => !isGone(row.state)).sort((a, b) => b.pid - a.pid)
}

function neighbours(rows: ReadonlyMap<number, ProcessRow>) {
  const children = Map.groupBy(rows.values(), (row) => row.ppid)
  const groups = Map.groupBy(rows.values(), (row) => row.pgid)
  const sessions = Map.groupBy(rows.values(), (row) => row.session)
  return {
    childrenOf: (pid: number) => children.get(pid) ?? [],
    inGroup: (number: number) => [...(groups.get(number) ?? []), ...(sessions.get(number) ?? [])],
  }
}

function groupsOf(own: readonly ProcessRow[], rows: ReadonlyMap<number, ProcessRow>): number[] {
  const ownPids = new Set(own.map((row) => row.pid))
  const mixed = new Set<number>()
  for (const row of rows.values()) if (!isGone(row.state) && !ownPids.has(row.pid)) mixed.add(row.pgid)
  return [...new Set(own.map((row) => row.pgid))].filter((pgid) => pgid > 1 && !mixed.has(pgid))
}
