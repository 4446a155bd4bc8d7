import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { z } from 'zod'
import type { Database } from '../../../control-plane/db/open.ts'
import { query } from '../../../control-plane/db/statement.ts'
import { measureTables } from '../../../control-plane/db/statistics.ts'
import { openSqlite } from '../../kit/database.ts'

// What SQLite knows of the sizes of tables, which decides by which index it reads.

let folder: string
let database: Database
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-statistics-'))
  database = openSqlite(join(folder, 'svc.db'))
})
afterEach(async () => {
  await database.close()
  rmSync(folder, { recursive: true, force: true })
})

/** Runs that have ended, half of them of each of two workspaces. */
async function addRuns(count: number): Promise<void> {
  await database.root.raw(
    `insert into runs (id, workspace_id, agent_id, status, trigger_source, harness, environment_type, created_at, ended_at)
     with recursive n(i) as (select 1 union all select i + 1 from n where i < ${count})
     select 'run_' || count || '_' || i, 'w' || (i % 2), 'agt_' || (i % 50), 'succeeded', 'manual', 'command', 'device', i, i
     from n, (select count(*) as count from runs)`,
  )
}

const byIds = 'explain query plan select status from runs where workspace_id = ? and id in ?'
const planned = query(byIds, z.object({ detail: z.string() }))
const ids = ['run_0_1', 'run_0_2', 'run_0_3', 'run_0_4', 'run_0_5', 'run_0_6']

/** The step by which each of the two connections of a SQLite file would read runs by their ids. */
async function steps(): Promise<string[]> {
  const { root } = database
  const [reads] = await planned.list(root, ['w1', ids])
  const [writes] = await root.transaction((tx) => planned.list(tx, ['w1', ids]))
  return [reads!, writes!].map(({ detail }) => / \((.*)\)$/.exec(detail)?.[1] ?? detail)
}

it('reads by ids go by the ids once a table was measured, on both connections', async () => {
  await addRuns(2_000)
  expect(await steps()).toEqual(['workspace_id=?', 'workspace_id=?'])
  await measureTables(database.root)
  expect(await steps()).toEqual(['id=?', 'id=?'])
})

it('measures again what has grown tenfold, and otherwise asks only', async () => {
  const { root } = database
  await addRuns(300)
  expect(await measureTables(root)).toBeGreaterThan(0)
  const written = async () => (await root.raw('select total_changes() as n')) as unknown
  const before = await written()
  expect([await measureTables(root), await measureTables(root)]).toEqual([0, 0])
  expect(await written()).toEqual(before)

  await addRuns(6_000)
  expect(await measureTables(root)).toBe(1)
})

it('reads a bounded part of a table however large that is', async () => {
  await addRuns(60_000)
  await measureTables(database.root)
  const measured: { stat: string } = await database
    .root('sqlite_stat1')
    .where({ idx: 'runs_workspace_id_created_at_id_index' })
    .first()
  // The second number says how many rows a workspace has, as far as that was looked at; there are 30,000.
  expect(measured.stat).toBe('60000 10001 1 1')
})

it('loses no read that waits while tables are measured', async () => {
  const { root } = database
  await addRuns(2_000)
  const read = query('select id from runs where id = ?', z.object({ id: z.string() }))
  // More than are done within one turn of the loop, so that some of them wait for the next one.
  const slow = query(
    'select count(*) as n from runs a, runs b where a.id <> b.id and a.created_at < ?',
    z.object({ n: z.number() }),
  )
  const reading = [
    slow.list(root, [20]),
    read.list(root, ['run_0_1']),
    slow.list(root, [20]),
    read.list(root, ['run_0_2']),
  ]
  await measureTables(root)
  expect((await Promise.all(reading)).map((rows) => rows.length)).toEqual([1, 1, 1, 1])
})
