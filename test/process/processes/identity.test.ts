import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { afterEach, expect, test, vi } from 'vitest'
import { aliveOf, bootId, identityOf, isAlive, startTimeOf } from '../../../device-manager/process/identity.ts'
import { findProcessesOfRun, type RunSearch } from '../../../device-manager/process/orphans.ts'
import { psStates, readPs } from '../../../device-manager/process/ps.ts'
import { contentOf, type Family, startFamily, until } from './family.ts'

const membersOf = async (search: RunSearch) =>
  (await findProcessesOfRun(search)).own.map(({ pid, startTime }) => ({ pid, startTime }))

let run: Family | null = null
afterEach(async () => {
  await run?.end({ skipTo: 'kill' })
  await run?.assertGone()
  run = null
})

test('a process is known by its pid and start time while it lives', async () => {
  const child = spawn('sleep', ['1000'], { stdio: 'ignore' })
  const identity = identityOf(child.pid!)!
  expect(identity).toEqual({ pid: child.pid, startTime: startTimeOf(child.pid!) })
  expect(isAlive(identity)).toBe(true)
  expect(isAlive({ ...identity, startTime: '1' })).toBe(false)
  expect([...aliveOf([identity, { ...identity, startTime: '1' }])]).toEqual([identity])
  child.kill('SIGKILL')
  await once(child, 'exit')
  expect(isAlive(identity)).toBe(false)
  expect(startTimeOf(child.pid!)).toBe(null)
})

test.each([0, -1, 1.5, Number.NaN, 2 ** 31])('%d is no pid', (pid) => {
  expect(startTimeOf(pid)).toBe(null)
})

test('a zombie counts as gone', async () => {
  // The inner shell is replaced by a program that never waits for its child.
  run = await startFamily('bash -c "touch $D/zombie; exit 0" & echo $! > $D/pid; exec sleep 1000')
  await run.present(2)
  const pid = Number(contentOf(run, 'pid'))
  await until(() => psStates(pid)[0]?.state === 'Z')
  expect(startTimeOf(pid)).toBe(null)
  expect(await membersOf({ runId: run.runId, roots: [], cgroup: null, exclude: [] })).toEqual([run.leader])
  // By the mark alone, since the run's first process started; from later on it is none of the run's.
  const { runId } = run
  const since = (startTime: string) => ({ runId, roots: [], since: startTime, cgroup: null, exclude: [] })
  expect(await membersOf(since(run.leader.startTime))).toEqual([run.leader])
  if (process.platform === 'linux') expect(await membersOf(since(String(Number(run.leader.startTime) + 1)))).toEqual([])
})

test('the boot has one id, the same at each look', () => {
  expect(bootId()).toBe(bootId())
  expect(bootId().length).toBeGreaterThan(5)
})

test('the search leaves out what it is told to', async () => {
  run = await startFamily('(exec sleep 1000) & (exec sleep 1000) & touch $D/up; sleep 1000')
  await run.present(1)
  const search = { runId: run.runId, roots: [], cgroup: null, exclude: [] }
  // A process that has ended and is not collected yet keeps its group from being one of the run alone.
  const { own, groups } = await vi.waitUntil(
    async () => {
      const found = await findProcessesOfRun(search)
      return found.own.length === 3 && found.groups.length > 0 ? found : null
    },
    { timeout: 20_000, interval: 20 },
  )
  expect(own.map(({ pid }) => pid)).toContain(run.leader.pid)
  expect(groups).toEqual([run.leader.pid])
  const without = await findProcessesOfRun({ ...search, exclude: [run.leader.pid] })
  expect(without.own.length).toBe(2)
  expect(without.groups).toEqual([])
})

test('a mark after a very long environment is found', async () => {
  const child = spawn('sleep', ['1000'], {
    stdio: 'ignore',
    env: {
      PATH: process.env['PATH'],
      A: 'x'.repeat(100_000),
      B: `SVC_RUN_ID=run_other${'y'.repeat(65_000)}`,
      SVC_RUN_ID: 'run_longEnv',
    },
  })
  try {
    const found = async (runId: string) =>
      (await membersOf({ runId, roots: [], cgroup: null, exclude: [] })).map(({ pid }) => pid)
    await vi.waitUntil(async () => (await found('run_longEnv')).length > 0, { timeout: 20_000, interval: 20 })
    expect(await found('run_longEnv')).toEqual([child.pid])
    expect(await found('run_other')).toEqual([])
  } finally {
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
})

const hasPs = spawnSync('ps', ['-p', '1']).status === 0

test.skipIf(!hasPs)('what `ps` says is read: ids, state, start time, and the mark in the environment', async () => {
  run = await startFamily('touch $D/up; exec sleep 1000')
  await run.present(1)
  const { pid } = run.leader
  const rows = readPs('procps')
  const row = rows.find((each) => each.pid === pid)!
  expect(row).toMatchObject({ pid, ppid: process.pid, pgid: pid, session: pid, uid: process.getuid!(), state: 'S' })
  expect(row.command).toContain(`SVC_RUN_ID=${run.runId}`)
  expect(Math.abs(Date.parse(`${row.startTime} UTC`) - Date.now())).toBeLessThan(60_000)
  expect(psStates(pid)).toEqual([{ pid, state: 'S', startTime: row.startTime }])
  expect(psStates().length).toBeGreaterThan(1)
  expect(psStates(2 ** 22 + 1)).toEqual([])
})
