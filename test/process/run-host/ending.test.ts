import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isLong } from '../../kit/forms.ts'
import { findProcessesOfRun } from '../../../device-manager/process/orphans.ts'
import { outputOf, specOf, spooled, testDevice, until, type TestDevice, type TestHost } from './host-client.ts'

let device: TestDevice
beforeAll(() => {
  device = testDevice({ isWalled: true })
})
afterAll(() => device.remove())

const liveOf = async (runId: string) => (await findProcessesOfRun({ runId, roots: [], cgroup: null, exclude: [] })).own

async function ended(host: TestHost, runId: string) {
  const { report } = await host.reply('ended')
  await host.left()
  const held = spooled(device, runId)
  // Whatever happened: one ending, it is the last event, and nothing of the run lives.
  expect(held.events.filter(({ kind }) => kind === 'ended')).toHaveLength(1)
  expect(held.events.at(-1)!.kind).toBe('ended')
  expect(held.ending?.report).toEqual(report)
  expect(await liveOf(runId)).toEqual([])
  for (const [folder, name] of [
    ['runs', runId],
    ['own', host.hostId],
  ] as const)
    expect(existsSync(join(device.stateDir, folder, name)), folder).toBe(false)
  expect(existsSync(host.recordPath)).toBe(false)
  return { report, ...held }
}

async function saidReady(runId: string): Promise<void> {
  await until(() => outputOf(spooled(device, runId).events).toString().includes('ready'), 'ready')
}

describe('how a run ends', () => {
  test('an exit status other than 0 is an error with that status', async () => {
    const host = await device.host()
    const spec = specOf(device, { command: 'exit 7' })
    await host.launch(spec)
    expect((await ended(host, spec.runId)).report).toMatchObject({ exitReason: 'error', exitCode: 7, signal: null })
  })

  test('a signal is an error that names it', async () => {
    const host = await device.host()
    const spec = specOf(device, { command: 'kill -KILL $$' })
    await host.launch(spec)
    expect((await ended(host, spec.runId)).report).toMatchObject({
      exitReason: 'error',
      exitCode: null,
      signal: 'SIGKILL',
    })
  })

  test.for([
    ['a program that does not exist', ['no-such-program-anywhere']],
    ...(isLong
      ? ([
          ['a program that is not executable', ['/etc/passwd']],
          ['no command at all', null],
        ] as const)
      : []),
  ] as const)('%s is harness_start_failed, with a started that has no pid', async ([, command]) => {
    const host = await device.host()
    const spec = specOf(device, { command: command && [...command] })
    expect((await host.launch(spec)).pid).toBeNull()
    const { report } = await ended(host, spec.runId)
    expect(report).toMatchObject({ exitReason: 'harness_start_failed', eventCount: 1 })
    expect(report.message).toBeTruthy()
  })

  test('a folder that is gone is harness_start_failed', async () => {
    const host = await device.host()
    const folder = { shortId: 'x', rootPath: join(device.stateDir, 'gone') }
    const spec = specOf(device, { command: 'true', folder })
    await host.launch(spec)
    expect((await ended(host, spec.runId)).report).toMatchObject({ exitReason: 'harness_start_failed' })
  })

  test('stop interrupts, and the reason given is the run’s', async () => {
    const host = await device.host()
    const spec = specOf(device, {
      command: `trap 'echo stopped by INT; exit 9' INT; echo ready; while :; do sleep 0.1; done`,
    })
    await host.launch(spec)
    await saidReady(spec.runId)
    host.send({ type: 'stop', exitReason: 'interrupted', message: 'A person stopped it.' })
    host.send({ type: 'stop', exitReason: 'timeout', message: 'second' })
    const { report, events } = await ended(host, spec.runId)
    expect(report).toMatchObject({ exitReason: 'interrupted', message: 'A person stopped it.' })
    expect(outputOf(events).toString()).toContain('stopped by INT')
  })

  // These mostly wait.
  test.concurrent('a harness that ignores interrupt and terminate is killed after both had their time', async () => {
    const host = await device.host()
    const spec = specOf(device, {
      command: [
        'python3',
        '-uc',
        'import signal,time\nfor s in (2,15,1): signal.signal(s, lambda *a: print("ignored", a[0]))\nprint("ready")\nwhile True: time.sleep(1)',
      ],
    })
    await host.launch(spec)
    await saidReady(spec.runId)
    const before = Date.now()
    host.send({ type: 'stop', exitReason: 'interrupted', message: null })
    const { report, events } = await ended(host, spec.runId)
    const took = Date.now() - before
    expect(report).toMatchObject({ exitReason: 'interrupted', signal: 'SIGKILL' })
    expect(took).toBeGreaterThan(9_900)
    expect(took).toBeLessThan(20_000)
    expect(outputOf(events).toString()).toMatch(/ignored 2\r\n[^]*ignored 15\r\n/)
  })

  // In the short form the next test has such children, too.
  if (isLong)
    test.concurrent('a child that holds the terminal has a moment and is ended; one that left the session is ended too', async () => {
      const host = await device.host()
      const spec = specOf(device, {
        command: `trap '' HUP; sleep 300 & setsid sleep 301 > /dev/null < /dev/null 2>&1 & echo ready`,
      })
      const before = Date.now()
      await host.launch(spec)
      const { report } = await ended(host, spec.runId)
      expect(report).toMatchObject({ exitReason: 'completed', exitCode: 0 })
      expect(Date.now() - before).toBeGreaterThan(1_900)
      expect(Date.now() - before).toBeLessThan(12_000)
    })

  test.concurrent('a child that holds the terminal and ignores SIGTERM delays the ending by 5 s at most, and one that left the session is ended too', async () => {
    const host = await device.host()
    const spec = specOf(device, {
      command: `setsid sleep 301 > /dev/null < /dev/null 2>&1 & python3 -c 'import signal,time
for s in (1, 2, 15): signal.signal(s, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(300)' & while ! grep -qs . started; do sleep 0.05; done; rm started`,
    })
    await host.launch(spec)
    await saidReady(spec.runId)
    writeFileSync(join(device.workDir, 'started'), 'yes')
    const before = Date.now()
    const { report } = await ended(host, spec.runId)
    expect(report).toMatchObject({ exitReason: 'completed', exitCode: 0 })
    // And a second and a half for a busy machine.
    expect(Date.now() - before).toBeLessThan(6_500)
  })

  test('stop before the start: no harness is ever launched', async () => {
    const host = await device.host()
    const proof = join(device.workDir, 'launched')
    const spec = specOf(device, { command: `touch ${proof}` })
    await host.connect()
    host.assign(spec)
    host.send({ type: 'stop', exitReason: 'agent_paused', message: null })
    host.start()
    const { report } = await ended(host, spec.runId)
    expect(report).toMatchObject({ exitReason: 'agent_paused', eventCount: 1 })
    expect(existsSync(proof)).toBe(false)
  })

  // In the short form a daemon that is stopped shows it, in `test/fault/daemon-death.test.ts`.
  if (isLong)
    test('a host told to terminate leaves when idle', async () => {
      const idle = await device.host()
      await idle.connect()
      idle.child.kill('SIGTERM')
      await idle.left()
    })

  test('a host told to terminate ends the run that it has', async () => {
    const host = await device.host()
    const spec = specOf(device, { command: 'echo ready; sleep 300' })
    await host.launch(spec)
    await saidReady(spec.runId)
    host.child.kill('SIGTERM')
    expect((await ended(host, spec.runId)).report.exitReason).toBe('crashed')
  })

  test('discard leaves nothing', async () => {
    const host = await device.host()
    const spec = specOf(device, { command: 'true' })
    await host.connect()
    host.assign(spec)
    await host.reply('prepared')
    host.send({ type: 'discard' })
    await host.left()
    expect(spooled(device, spec.runId).stats).toBeNull()
    expect(existsSync(host.recordPath)).toBe(false)
    expect(existsSync(join(device.stateDir, 'runs', spec.runId))).toBe(false)
  })

  test('limits: the whole time, and silence', async () => {
    const limits = { runMs: 600_000, noProgressMs: 600_000, firstEventMs: 600_000, toolCalls: 10, silentMs: 600_000 }
    const [late, silent] = [await device.host(), await device.host()]
    const lateSpec = specOf(device, {
      command: 'while :; do echo x; sleep 0.05; done',
      limits: { ...limits, runMs: 700 },
    })
    const silentSpec = specOf(device, { command: 'sleep 300', limits: { ...limits, noProgressMs: 400 } })
    await late.launch(lateSpec)
    await silent.launch(silentSpec)
    expect((await ended(late, lateSpec.runId)).report.exitReason).toBe('timeout')
    expect((await ended(silent, silentSpec.runId)).report.exitReason).toBe('no_progress')
  })

  test('the change-set is taken while the run lives and at its end, against the base', async () => {
    const repo = join(device.workDir, 'repo')
    mkdirSync(repo)
    const git = (...args: string[]) =>
      execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@localhost', ...args], { cwd: repo })
    git('init', '-q')
    writeFileSync(join(repo, 'a.txt'), 'a\n')
    git('add', '.')
    git('commit', '-qm', 'one')
    writeFileSync(join(repo, 'dirty.txt'), 'dirty before\n')
    const host = await device.host()
    const spec = specOf(device, {
      command: 'echo b >> a.txt; echo ready; read x; echo new > n.txt',
      folder: { shortId: 'r', rootPath: repo },
    })
    await host.launch(spec)
    await saidReady(spec.runId)
    host.send({ type: 'change_set.get', requestId: 'q1' })
    const { result } = await host.reply('change_set')
    expect(result.ok && result.changeSet.files.map(({ path }) => path)).toEqual(['a.txt'])
    host.send({ type: 'input', inputId: '1', text: '' })
    const { ending } = await ended(host, spec.runId)
    const { changeSet } = ending!
    expect(changeSet?.ok && changeSet.changeSet.files.map(({ path, status }) => [path, status])).toEqual([
      ['a.txt', 'modified'],
      ['n.txt', 'added'],
    ])
    expect(git('for-each-ref').toString()).not.toContain(spec.runId)
    expect(readFileSync(join(repo, 'dirty.txt'), 'utf8')).toBe('dirty before\n')
  })
})
