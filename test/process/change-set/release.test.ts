import { existsSync, mkdirSync, readdirSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { releaseBase } from '../../../device-manager/change-set/diff.ts'
import { releaseStale } from '../../../device-manager/change-set/release.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import { baseOf, changesOf, resultOf, tempDir, tempRepo } from './repo.ts'

const hour = 3_600_000

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
  await releaseBase({ ...base, storeDir: '/nonexistent/.git/svc/runs/run_test' })
})

test('bases left by a crash are swept when they are old and their run is not live', async () => {
  const repo = tempRepo()
  const old = await baseOf(repo.dir, 'run_old')
  const live = await baseOf(repo.dir, 'run_live')
  const world = { ...realWorld, now: () => Date.now() + 25 * hour }
  expect(await releaseStale({ folder: repo.dir, liveRunIds: ['run_live'], world: realWorld })).toEqual([])
  expect(await releaseStale({ folder: repo.dir, liveRunIds: ['run_live'], world })).toEqual(['run_old'])
  expect(repo.git('for-each-ref', '--format=%(refname)', 'refs/svc').trim()).toBe(live.refName)
  expect(existsSync(old.storeDir)).toBe(false)
  expect((await changesOf(live)).files).toEqual([])
  expect(await releaseStale({ folder: repo.dir, liveRunIds: [], world: realWorld, olderThanMs: 0 })).toEqual([
    'run_live',
  ])
})

test('a sweep copes with half a base, foreign files and folders that are no repository', async () => {
  const repo = tempRepo()
  const half = join(repo.dir, '.git', 'svc', 'runs', 'run_half')
  mkdirSync(half, { recursive: true })
  utimesSync(half, 1, 1)
  expect(await releaseStale({ folder: repo.dir, liveRunIds: [], world: realWorld })).toEqual(['run_half'])
  expect(await releaseStale({ folder: tempDir(), liveRunIds: [], world: realWorld })).toEqual([])
  expect(await releaseStale({ folder: '/nonexistent', liveRunIds: [], world: realWorld })).toEqual([])
})

test('a base taken again for the same run replaces the first', async () => {
  const repo = tempRepo()
  await baseOf(repo.dir)
  repo.write('between.txt', 'x\n')
  const base = await baseOf(repo.dir)
  expect((await changesOf(base)).files).toEqual([])
})
