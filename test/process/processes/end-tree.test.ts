import { existsSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { makeRunCgroup, processesInCgroup, removeRunCgroup } from '../../../device-manager/process/cgroup.ts'
import { isAlive, startTimeOf } from '../../../device-manager/process/identity.ts'
import { escalationSteps } from '../../../device-manager/process/kill.ts'
import { findProcessesOfRun } from '../../../device-manager/process/orphans.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import { contentOf, type Family, startFamily, until } from './family.ts'

const families: Family[] = []
async function family(script: string, options?: { mark?: boolean }): Promise<Family> {
  const started = await startFamily(script, options)
  families.push(started)
  return started
}
afterEach(async () => {
  for (const each of families.splice(0)) await each.assertGone()
})

const stubborn = 'trap "" INT TERM HUP'

describe('the escalation', () => {
  test('its times are those of the design', () => {
    expect(escalationSteps).toMatchObject({ interruptMs: 7500, terminateMs: 2500 })
  })

  test('a program that ends on an interrupt gets that one signal, once, and keeps its exit status', async () => {
    const run = await family('trap "echo int >> $D/log; exit 7" INT; touch $D/up; while :; do sleep 0.02; done')
    await run.present(1)
    const startedAt = performance.now()
    expect(await run.end({ steps: { interruptMs: 10_000 } })).toEqual({ survivors: [], signals: ['SIGINT'] })
    expect(performance.now() - startedAt).toBeLessThan(5000)
    expect(await run.exited).toEqual({ exitCode: 7, signal: null })
    expect(contentOf(run, 'log')).toBe('int\n')
  })

  test('one that ignores the interrupt ends on the second step', async () => {
    const run = await family('trap "" INT; trap "exit 9" TERM; touch $D/up; while :; do sleep 0.02; done')
    await run.present(1)
    const steps: [string, number][] = []
    const startedAt = performance.now()
    const result = await run.end({ onStep: (signal) => steps.push([signal, performance.now() - startedAt]) })
    expect(result).toEqual({ survivors: [], signals: ['SIGINT', 'SIGTERM'] })
    expect(steps.map(([signal]) => signal)).toEqual(result.signals)
    expect(steps[1]![1] - steps[0]![1]).toBeGreaterThanOrEqual(400)
    expect(await run.exited).toEqual({ exitCode: 9, signal: null })
  })

  test('one that ignores both, with children that do, is killed', async () => {
    const run = await family(
      `${stubborn}; (touch $D/a; while :; do sleep 1; done) & touch $D/b; while :; do sleep 1; done`,
    )
    await run.present(2)
    expect(await run.end()).toEqual({ survivors: [], signals: ['SIGINT', 'SIGTERM', 'SIGKILL'] })
    expect(await run.exited).toEqual({ exitCode: null, signal: 'SIGKILL' })
  })

  test('it can begin with a later step', async () => {
    const gentle = await family('trap "exit 3" TERM; touch $D/up; while :; do sleep 0.02; done')
    await gentle.present(1)
    expect((await gentle.end({ skipTo: 'terminate' })).signals).toEqual(['SIGTERM'])
    const hard = await family('touch $D/up; sleep 1000')
    await hard.present(1)
    expect((await hard.end({ skipTo: 'kill' })).signals).toEqual(['SIGKILL'])
    expect(await gentle.exited).toEqual({ exitCode: 3, signal: null })
  })

  test('nothing is signalled when all is over already, and again is harmless', async () => {
    const run = await family('touch $D/up')
    await run.exited
    expect(await run.end()).toEqual({ survivors: [], signals: [] })
    expect(await run.end()).toEqual({ survivors: [], signals: [] })
  })

  test('the interrupt goes to the group only: a helper in its own session is left to its parent', async () => {
    const run = await family(
      `setsid bash -c 'trap "touch \\$D/helper-interrupted" INT; touch $D/helper; while [ ! -e $D/stop ]; do sleep 0.02; done' &
       trap 'touch $D/stop; wait; exit 0' INT; touch $D/up; while :; do sleep 0.02; done`,
    )
    await run.present(2)
    expect((await run.end({ steps: { interruptMs: 10_000 } })).signals).toEqual(['SIGINT'])
    expect(existsSync(path.join(run.folder, 'helper-interrupted'))).toBe(false)
  })

  test('what the group left behind in a session of its own has a while, and is then told to end, too', async () => {
    const waits =
      'trap "exit 4" TERM; trap "touch \\$D/helper-interrupted" INT; touch $D/helper; while :; do sleep 0.02; done'
    const run = await family(`setsid bash -c '${waits}' & touch $D/up; sleep 1000`)
    await run.present(2)
    const at: number[] = []
    const steps = { interruptMs: 60_000, orphanMs: 300, terminateMs: 60_000 }
    const result = await run.end({ steps, onStep: () => at.push(performance.now()) })
    expect(result).toEqual({ survivors: [], signals: ['SIGINT', 'SIGTERM'] })
    expect(at[1]! - at[0]!).toBeGreaterThanOrEqual(300)
    expect(existsSync(path.join(run.folder, 'helper-interrupted'))).toBe(false)
  })

  test('a group of which one goes on has all of its time, whatever it left behind', async () => {
    const run = await family(
      `setsid sleep 1000 & (trap "" INT; touch $D/a; sleep 1; touch $D/written) & touch $D/b; sleep 1000`,
    )
    await run.present(2)
    await run.end({ steps: { interruptMs: 60_000, orphanMs: 100 } })
    expect(existsSync(path.join(run.folder, 'written'))).toBe(true)
  })

  test.each(['INT', 'TERM'])('a stopped tree is woken and ends on SIG%s', async (signal) => {
    const ignored = signal === 'TERM' ? 'trap "" INT' : ':'
    const child = '$SIG{INT} = "DEFAULT"; open F, ">", "$ENV{D}/a"; close F; sleep 1000'
    const run = await family(
      `${ignored}; trap "exit 5" ${signal}; perl -e '${child}' & touch $D/b; wait; wait; sleep 1000`,
    )
    await run.present(2)
    process.kill(-run.leader.pid, 'SIGSTOP')
    const result = await run.end({ steps: { interruptMs: signal === 'TERM' ? 400 : 10_000, terminateMs: 10_000 } })
    expect(result.survivors).toEqual([])
    expect(result.signals.at(-1)).toBe(`SIG${signal}`)
  })

  test('a stopped tree that ignores signals is killed', async () => {
    const run = await family(
      `${stubborn}; (touch $D/a; while :; do sleep 1; done) & touch $D/b; while :; do sleep 1; done`,
    )
    await run.present(2)
    process.kill(-run.leader.pid, 'SIGSTOP')
    expect((await run.end()).signals).toEqual(['SIGINT', 'SIGTERM', 'SIGKILL'])
  })
})

describe('nothing is left behind', () => {
  test('children in sessions of their own, and children of these', async () => {
    const run = await family(
      `${stubborn}; setsid bash -c '${stubborn}; touch $D/a; setsid bash -c "touch $D/b; while :; do sleep 1; done" & while :; do sleep 1; done' & touch $D/c; wait`,
    )
    await run.present(3)
    expect((await run.end()).survivors).toEqual([])
  })

  test('a daemon by double fork whose parent is gone before the search, known by its mark alone', async () => {
    const run = await family(
      `setsid bash -c 'bash -c "${stubborn.replaceAll('"', '\\"')}; touch $D/a; while :; do sleep 1; done" & exit 0' & wait; touch $D/b`,
    )
    await run.present(2)
    await run.exited
    const found = await findProcessesOfRun({ runId: run.runId, roots: [], cgroup: null, exclude: [] })
    expect(found.own.length).toBeGreaterThan(0)
    expect((await run.end({ leader: null, pgid: null })).survivors).toEqual([])
  })

  test('without the mark: by descent, also when the parents die of the first signals', async () => {
    const run = await family(
      `env -u SVC_RUN_ID setsid bash -c 'bash -c "trap \\"\\" INT TERM; touch $D/a; while :; do sleep 1; done" & touch $D/b; wait' & touch $D/c; wait`,
      { mark: false },
    )
    await run.present(3)
    expect((await run.end()).survivors).toEqual([])
  })

  test('without the mark, the leader gone: by the group that it led, when its exit was seen', async () => {
    const run = await family('(touch $D/a; exec sleep 1000) & touch $D/b', { mark: false })
    await run.present(2)
    await run.exited
    expect((await run.end()).signals).toEqual([])
    const startedAt = performance.now()
    expect(await run.end({ leaderExitSeen: true, skipTo: 'kill' })).toEqual({ survivors: [], signals: ['SIGKILL'] })
    expect(performance.now() - startedAt).toBeLessThan(5000)
  })

  test('200 children that ignore signals, while the event loop stays free', async () => {
    const run = await family(
      `for i in $(seq 200); do sh -c 'trap "" INT TERM; : >$D/$1; exec sleep 1000' x $i & done; trap "" INT TERM; while :; do wait; sleep 0.1; done`,
    )
    await run.present(200)
    let longest = 0
    // The time of this thread on the processor, since other tests run beside this one.
    let last = process.threadCpuUsage()
    const beat = setInterval(() => {
      const { user, system } = process.threadCpuUsage(last)
      longest = Math.max(longest, (user + system) / 1_000)
      last = process.threadCpuUsage()
    }, 5)
    try {
      expect((await run.end()).survivors).toEqual([])
    } finally {
      clearInterval(beat)
    }
    expect(longest).toBeLessThan(250)
  })

  test('a loop of forks in one group', async () => {
    const run = await family(`${stubborn}; f() { touch $D/up; (f) & }; f; while :; do (f) & sleep 0.05; done`)
    await run.present(1)
    expect((await run.end({ skipTo: 'kill' })).survivors).toEqual([])
  })

  test('a process that forks into a new session again and again and exits each time', async () => {
    const hop =
      'use POSIX; $SIG{INT}=$SIG{TERM}="IGNORE"; open F, ">", "$ENV{D}/up"; close F; while (1) { exit if fork; setsid(); select(undef, undef, undef, 0.003) }'
    const run = await family(`perl -e '${hop}'`)
    await run.present(1)
    await run.exited
    expect((await run.end()).survivors).toEqual([])
  })

  test('by its control group, when neither mark nor descent lead to it', async (context) => {
    const run = await family(
      'while [ ! -e $D/go ]; do sleep 0.01; done; (setsid bash -c "touch $D/a; exec sleep 1000" & ); touch $D/b',
      { mark: false },
    )
    const cgroup = makeRunCgroup(run.runId)
    if (cgroup === null) {
      process.kill(-run.leader.pid, 'SIGKILL')
      await run.exited
      context.skip('this user may not make control groups (version 2) here')
      return
    }
    writeFileSync(path.join(cgroup, 'cgroup.procs'), String(run.leader.pid))
    expect(processesInCgroup(cgroup)).toContain(run.leader.pid)
    writeFileSync(path.join(run.folder, 'go'), '')
    await run.present(3)
    await run.exited
    expect(await run.end({ leader: null, pgid: null, cgroup, skipTo: 'kill' })).toEqual({
      survivors: [],
      signals: ['SIGKILL'],
    })
    await until(() => removeRunCgroup(cgroup))
    expect(existsSync(cgroup)).toBe(false)
  })
})

describe('nothing else is touched', () => {
  test('a pid that belongs to another process now, with its group and children', async () => {
    const foreign = await family('trap "touch $D/hit; exit" INT TERM; touch $D/up; while :; do sleep 0.02; done', {
      mark: false,
    })
    await foreign.present(1)
    const old = { pid: foreign.leader.pid, startTime: String(Number(foreign.leader.startTime) - 1) }
    for (const leaderExitSeen of [false, true]) {
      const result = await foreign.end({ leader: old, runId: realWorld.id('run_'), leaderExitSeen })
      expect(result).toEqual({ survivors: [], signals: [] })
    }
    const found = await findProcessesOfRun({ runId: 'run_none', roots: [old], cgroup: null, exclude: [] })
    expect(found.own).toEqual([])
    expect(isAlive(old)).toBe(false)
    expect(isAlive(foreign.leader)).toBe(true)
    expect((await foreign.end()).signals).toEqual(['SIGINT'])
    expect(existsSync(path.join(foreign.folder, 'hit'))).toBe(true)
  })

  test('another run beside it, and a run whose id only begins alike', async () => {
    const [one, two] = [await family('touch $D/up; exec sleep 1000'), await family('touch $D/up; exec sleep 1000')]
    await Promise.all([one.present(1), two.present(1)])
    expect((await one.end({ runId: one.runId.slice(0, -1), leader: null, pgid: null })).signals).toEqual([])
    await one.end()
    expect([isAlive(one.leader), isAlive(two.leader)]).toEqual([false, true])
    await two.end()
  })

  test('a process that is to be spared although it carries the mark and is in the group', async () => {
    const run = await family('(echo $BASHPID > $D/pid; exec sleep 1000) & (exec sleep 1000) & touch $D/up; sleep 1000')
    await run.present(2)
    await until(() => contentOf(run, 'pid').endsWith('\n'))
    const spared = Number(contentOf(run, 'pid'))
    expect((await run.end({ exclude: [spared] })).survivors).toEqual([])
    expect(startTimeOf(run.leader.pid)).toBe(null)
    expect(startTimeOf(spared)).not.toBe(null)
    await run.end()
  })
})
