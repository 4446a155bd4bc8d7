import { expect, test } from 'vitest'
import { listTableSizes, measureDatabase } from '../../control-plane/db/table-sizes.ts'
import { countUsage, listSlugs } from '../../control-plane/operator/usage-store.ts'
import { readUsage, usageTable } from '../../control-plane/operator/usage.ts'
import { insertFileRevision } from '../../control-plane/resources/files/revision-store.ts'
import { onBoth, openSqlite } from '../kit/database.ts'
import { smallTables } from '../process/plans/growths.ts'
import { revisionRow, seedFile } from './file-rows.ts'
import { at, seedAgent, seedRun, seedTask, seedWorkspace } from './seed.ts'

onBoth('what takes room is told by kind, in all and by workspace, with the oldest of each', async ({ root }) => {
  const [large, small] = [await seedWorkspace(root, 'large'), await seedWorkspace(root, 'small')]
  const agent = await seedAgent(root, large)
  const [first] = [await seedRun(root, agent, { createdAt: at - 1_000 }), await seedRun(root, agent)]
  await root('runs').where({ id: first.id }).update({ event_seq: 7, event_bytes: 5_000 })
  await seedRun(root, await seedAgent(root, small))
  const file = await seedFile(root, small, { revisionCount: 2 })
  await insertFileRevision(root, { ...revisionRow(file.id, 2), sizeBytes: 2_000, createdAt: at + 1 })
  // Its bytes are removed.
  await insertFileRevision(root, { ...revisionRow(file.id, 3), sizeBytes: 9_000, blobId: null })
  await seedTask(root, small)

  const usage = await readUsage(root, { workspace: null })
  const kinds = Object.fromEntries(usage.kinds.map((kind) => [kind.kind, kind]))
  expect(kinds).toMatchObject({
    runs: { rows: 3, filesBytes: 0, oldestAt: at - 1_000 },
    run_events: { rows: 7, oldestAt: at - 1_000 },
    tasks: { rows: 1 },
    file_versions: { rows: 3, filesBytes: 2_011, oldestAt: at },
    learnings: { rows: 0, oldestAt: null },
  })
  expect(kinds['runs']!.databaseBytes).toBeGreaterThan(0)
  expect(usage.databaseBytes).toBeGreaterThanOrEqual(kinds['runs']!.databaseBytes)
  const of = (slug: string) => usage.workspaces.find(({ workspace }) => workspace === slug)!.kinds
  expect(
    of('large')
      .map(({ kind }) => kind)
      .toSorted(),
  ).toEqual(['run_events', 'runs'])
  expect(of('large')).toContainEqual(
    expect.objectContaining({ kind: 'run_events', rows: 7, databaseBytes: 5_000, isEstimated: false }),
  )
  expect(of('large')).toContainEqual(expect.objectContaining({ kind: 'runs', rows: 2, isEstimated: true }))
  expect(of('small').find(({ kind }) => kind === 'file_versions')).toMatchObject({ rows: 3, filesBytes: 2_011 })
  const [share, all] = [of('large').find(({ kind }) => kind === 'runs')!, kinds['runs']!]
  expect(share.databaseBytes).toBe(Math.round((all.databaseBytes * 2) / 3))

  expect((await readUsage(root, { workspace: 'small' })).workspaces.map(({ workspace }) => workspace)).toEqual([
    'small',
  ])
  expect(usageTable(usage)).toMatch(/^The database takes [\d.]+ [KM]iB\.\n\n {2}KIND +ROWS +DATABASE +FILES +OLDEST\n/)
  expect(usageTable(usage)).toMatch(/\nsmall\n.*\n(?:.*\n)* {2}file_versions +3 +about .* 2\.0 KiB +2025-10-09/)
})

onBoth('each kind is counted in an empty database, and each table is measured', async ({ root }) => {
  const counted = await countUsage(root)
  expect(counted.flatMap(({ workspaces }) => workspaces)).toEqual([])
  const measured = (await listTableSizes(root)).map(({ table }) => table)
  for (const table of counted.flatMap(({ tables }) => tables.filter((each) => each !== 'search_index')))
    expect(measured).toContain(table)
  expect(await measureDatabase(root)).toBeGreaterThan(0)
  expect([...(await listSlugs(root))]).toEqual([])
})

test('each table that grows has a kind', async () => {
  const database = openSqlite()
  const kinds = (await countUsage(database.root)).flatMap(({ tables }) => tables)
  const others = (await listTableSizes(database.root))
    .map(({ table }) => table)
    .filter((table) => !kinds.includes(table) && !/^(?:search_|sqlite_)/.test(table))
  expect(others.filter((table) => smallTables[table] === undefined && !sweptTables.includes(table))).toEqual([])
  await database.close()
})

/** Sweeps remove what is old of these by themselves. */
const sweptTables = ['wakes', 'wake_keys', 'outbox', 'idempotency', 'github_deliveries']
