import { idFrom } from '../../../shared/lib/ids.ts'
import { existsSync, mkdirSync, readdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { releaseBase } from '../../../device-manager/change-set/diff.ts'
import { takeBase, type BaseSnapshot } from '../../../device-manager/change-set/snapshot.ts'
import { placesIn } from '../../../device-manager/setup/places.ts'
import { runPaths } from '../../../device-manager/run-host/wire/record.ts'
import { removeRunFolder } from '../../../device-manager/run/leftovers.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import { baseOf, changesOf, resultOf, summary, tempDir, tempRepo } from './repo.ts'

test('a released base leaves nothing, may be released twice, and can be taken anew', async () => {
  const repo = tempRepo()
  const before = readdirSync(join(repo.dir, '.git')).toSorted()
  const base = await baseOf(repo.dir)
  expect(repo.git('rev-parse', base.refName).trim()).toBe(base.commit)
  await changesOf(base)
  await releaseBase(base)
  await releaseBase(base)
  expect(repo.git('for-each-ref', 'refs/svc')).toBe('')
  expect(readdirSync(join(repo.dir, '.git')).toSorted()).toEqual(before)
  expect(await resultOf(base)).toMatchObject({ ok: false, code: 'repo_unavailable' })
  const again = await baseOf(repo.dir)
  expect((await changesOf(again)).files).toEqual([])
})

test('releasing a base whose repository is gone is quiet, and a forged path removes nothing', async () => {
  const repo = tempRepo()
  const base = await baseOf(repo.dir)
  const bystander = join(tempDir(), 'precious')
  mkdirSync(bystander)
  await releaseBase({ ...base, storeDir: bystander })
  expect(existsSync(bystander)).toBe(true)
  await releaseBase({ ...base, storeDir: '/nonexistent/runs/run_test/change-set', commonDir: '/nonexistent/.git' })
})

test('what a host left that died while it took the base is removed with its run', async () => {
  for (const isNoted of [true, false]) {
    const repo = tempRepo()
    const base = await baseOf(repo.dir)
    const places = placesIn(join(base.storeDir, '..', '..', '..'))
    const { base: note, root } = runPaths(places.stateDir, idFrom('run_test'))
    if (isNoted) writeFileSync(note, JSON.stringify({ base: { ok: true, base } }))
    await removeRunFolder(places, idFrom('run_test'), null)
    expect(existsSync(root)).toBe(false)
    expect(repo.git('for-each-ref', 'refs/svc')).toBe('')
  }
})

test('what an earlier version kept in the repository is not compared with, and is removed', async () => {
  const repo = tempRepo()
  const base = await baseOf(repo.dir)
  const older = join(repo.dir, '.git', 'svc', 'runs', 'run_test')
  mkdirSync(join(older, '..'), { recursive: true })
  renameSync(base.storeDir, older)
  const { commonDir: _, ...known } = { ...base, storeDir: older }
  expect(await resultOf(known as BaseSnapshot)).toMatchObject({ ok: false, code: 'diff_unavailable' })
  await releaseBase(known as BaseSnapshot)
  expect(existsSync(join(repo.dir, '.git', 'svc'))).toBe(false)
  expect(repo.git('for-each-ref', 'refs/svc')).toBe('')
})

test('a base taken again for the same run replaces the first', async () => {
  const repo = tempRepo()
  await baseOf(repo.dir)
  repo.write('between.txt', 'x\n')
  const base = await baseOf(repo.dir)
  expect((await changesOf(base)).files).toEqual([])
})

test('a state folder that lies in the repository, as in a home that is one, is no part of a run', async () => {
  const repo = tempRepo()
  const storeDir = join(repo.dir, '.local', 'state', 'runs', 'run_test', 'change-set')
  repo.write('.local/mine.txt', 'x\n')
  const taken = await takeBase({ folder: repo.dir, runId: idFrom('run_test'), storeDir, world: realWorld })
  if (!taken.ok) throw new Error(taken.message)
  repo.write('.local/state/spool.db', 'changed\n')
  repo.write('.local/mine.txt', 'y\n')
  expect(summary((await changesOf(taken.base)).files)).toEqual(['modified .local/mine.txt'])
})
