import { describe, expect, test } from 'vitest'
import { runMembers } from './orphans.ts'
import type { ProcessRow } from './proc.ts'

type Row = [pid: number, ppid: number, pgid: number, session: number, more?: Partial<ProcessRow>]

function members(rows: Row[], evidence: Partial<Parameters<typeof runMembers>[1]>): number[] {
  const table = new Map<number, ProcessRow>()
  for (const [pid, ppid, pgid, session, more] of rows) {
    table.set(pid, { pid, ppid, pgid, session, uid: null, state: 'S', startTime: `t${pid}`, ...more })
  }
  const nothing = {
    runId: 'run_1',
    roots: [],
    cgroup: null,
    exclude: [],
    excluded: new Set<number>(),
    marked: new Set<number>(),
  }
  return runMembers(table, { ...nothing, ...evidence }).map((row) => row.pid)
}
const root = (pid: number, startTime = `t${pid}`) => ({ pid, startTime })

describe('who belongs to a run', () => {
  test('the leader and all below it, whatever their groups', () => {
    const rows: Row[] = [
      [10, 1, 10, 10],
      [11, 10, 10, 10],
      [12, 11, 12, 12],
      [13, 12, 12, 12],
      [20, 1, 20, 20],
    ]
    expect(members(rows, { roots: [root(10)] })).toEqual([13, 12, 11, 10])
  })

  test('nobody by the number of a leader that is another process now', () => {
    const rows: Row[] = [
      [10, 1, 10, 10],
      [11, 10, 10, 10],
    ]
    expect(members(rows, { roots: [root(10, 'earlier')], ownGroups: [10] })).toEqual([])
  })

  test('the group of a leader that is gone: only with a member of the run in it, or on the caller’s word', () => {
    const rows: Row[] = [
      [11, 1, 10, 10],
      [12, 1, 10, 10],
    ]
    expect(members(rows, { roots: [root(10)] })).toEqual([])
    expect(members(rows, { roots: [root(10)], marked: new Set([12]) })).toEqual([12, 11])
    expect(members(rows, { roots: [root(10)], ownGroups: [10] })).toEqual([12, 11])
    expect(members(rows, { ownGroups: [10] })).toEqual([])
  })

  test('the session that a marked process leads, but not one that it merely is in', () => {
    const rows: Row[] = [
      [10, 1, 10, 10],
      [11, 1, 11, 10],
      [30, 5, 30, 5],
      [31, 5, 31, 5],
    ]
    expect(members(rows, { marked: new Set([10, 30]) })).toEqual([30, 11, 10])
  })

  test('a zombie is no member, but its group and session are still its own', () => {
    const rows: Row[] = [
      [10, 1, 10, 10, { state: 'Z' }],
      [11, 1, 10, 10],
    ]
    expect(members(rows, { roots: [root(10)] })).toEqual([11])
  })

  test('excluded processes are neither answered nor followed', () => {
    const rows: Row[] = [
      [10, 1, 10, 10],
      [11, 10, 10, 10],
      [12, 11, 12, 12],
    ]
    expect(members(rows, { roots: [root(10)], excluded: new Set([11]), marked: new Set([11]) })).toEqual([10])
  })

  test('where sessions are not told, groups are enough', () => {
    const unknown = { session: null }
    const rows: Row[] = [
      [10, 1, 10, 0, unknown],
      [11, 1, 10, 0, unknown],
      [20, 1, 20, 0, unknown],
    ]
    expect(members(rows, { roots: [root(10)] })).toEqual([11, 10])
  })
})
