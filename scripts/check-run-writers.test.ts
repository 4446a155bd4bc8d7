import { expect, test } from 'vitest'
import { runWriteProblems } from './check-run-writers.ts'

const file = 'control-plane/resources/runs/lease-store.ts'
const imported = (names: string) => `import { ${names} } from './store.ts'\n`

test('whatever writes rows of runs beside the machine is refused', () => {
  const wrong = [
    "const take = command(`update runs\n  set status = 'running' where id = ?`)",
    'const drop = command("delete from runs where id = ?")',
    "await db('runs').where({ id }).update({ lease_state: 'none' })",
    "await db('runs')\n  .where({ id })\n  .whereNull('ended_at')\n  .delete()",
    "await tx('runs').insert(row)",
    `${imported('runs, type RunRow')}await runs.update(db, { id }, { status })`,
    `${imported('runs')}const insert = runs.inserter(['id'])`,
    `${imported('runs as all')}await all.replace(db, row, {})`,
    "const again = table('runs', { id: runId })",
  ]
  expect(wrong.filter((text) => runWriteProblems(file, text).length === 0)).toEqual([])
  expect(runWriteProblems('control-plane/resources/runs/store.ts', 'runs.update(db, {}, {})')).toHaveLength(1)
  expect(runWriteProblems(file, wrong[0]!)[0]).toContain('control-plane/run/change-store.ts')
})

test('what reads them, and what writes other tables, is not', () => {
  const right = [
    "const live = db('runs').whereNull('ended_at')\nawait db('run_details').insert(row)",
    `${imported('runs')}const byId = runs.query('where id = ?')`,
    "import { runs } from './run-store.ts'\nawait runs.update(db, { id }, { status })",
    "const runs = table('workflow_runs', {})\nawait runs.insert(db, row)",
    "command('update runs_of_old set a = ?')",
    "command('update run_details set spec = ?')",
  ]
  expect(right.filter((text) => runWriteProblems(file, text).length > 0)).toEqual([])
})

test('the file of the machine, migrations and tests may', () => {
  const text = "command('update runs set status = ?')"
  const allowed = ['run/change-store.ts', 'db/migrations/0001-first.ts', 'sweeps/removal-store.ts', 'run/a.test.ts']
  expect(allowed.flatMap((name) => runWriteProblems(`control-plane/${name}`, text))).toEqual([])
  expect(runWriteProblems('test/store/runs.test.ts', text)).toEqual([])
})
