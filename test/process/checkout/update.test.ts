import { execFileSync, spawn } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { isLong } from '../../kit/forms.ts'
import { waitFor } from '../../kit/programs.ts'
import { TestApi } from '../../kit/system-api.ts'
import { makeRepo } from '../../kit/system-scenario.ts'
import { turnIsolationOff } from '../../kit/wall.ts'
import { Checkout, devices as allDevices } from './checkout.ts'

// A checkout goes on under the programs that were started from it. One for all tests.

let checkout: Checkout
beforeAll(async () => {
  checkout = new Checkout()
  // start.test.ts makes one.
  checkout.takeRelease(inject('programs'))
  await checkout.svc(['version'])
})
afterAll(() => checkout.remove())

/** Each run asks svc every 2 s: the twenty of `all` keep more than two processors busy. */
const areAll = process.env['CHECKOUT_RUNS'] === 'all'
const [before, meanwhile] = areAll ? [6, 4] : isLong ? [2, 1] : [1, 1]
const devices = areAll || isLong ? allDevices : allDevices.slice(0, 1)

test('what is not changed is not made again, and sources that cannot be made into programs say so', async () => {
  const release = releaseOf(checkout)
  // Of the same sources in another checkout.
  expect(release).toBe(basename(inject('programs')))
  const madeAt = () => statSync(join(checkout.code, '.cache/releases', release, 'checked')).mtimeMs
  const first = madeAt()
  await checkout.svc(['version'])
  expect(madeAt()).toBe(first)

  const source = join(checkout.code, 'cli/main.ts')
  const text = readFileSync(source)
  writeFileSync(source, 'import { nothing } from "./no-such-file.ts"\nnothing()\n')
  const broken = await checkout.start('svc', ['version']).said
  expect(broken).toMatchObject({ status: 1, stdout: '' })
  expect(broken.stderr).toContain('no-such-file')
  expect(broken.stderr).toContain('the programs could not be made')
  expect(releaseOf(checkout)).toBe(release)
  writeFileSync(source, text)
})

// The short form shows, in the next test, that programs that run keep their release.
if (isLong)
  test(
    'releases are removed once nobody uses them, and one that is not whole is made again',
    { timeout: 300_000 },
    async () => {
      const releases = join(checkout.code, '.cache/releases')
      const current = releaseOf(checkout)
      const daysAgo = new Date(Date.now() - 5 * 86_400_000)
      const makeOld = (name: string, used: boolean) => {
        const folder = join(releases, name)
        cpSync(join(releases, current), folder, { recursive: true })
        for (const file of ['checked', ...(used ? [] : ['used'])]) utimesSync(join(folder, file), daysAgo, daysAgo)
        if (!used) utimesSync(folder, daysAgo, daysAgo)
        return folder
      }
      const [left, used, running] = [makeOld('left', false), makeOld('used', true), makeOld('running', false)]
      const args = [join(running, 'device-manager/main.js'), 'run']
      const process = spawn('sh', ['-c', 'read line', ...args], { stdio: ['pipe', 'ignore', 'ignore'] })
      // A kill in the midst of its removal, or a machine that went down while it was made.
      rmSync(join(releases, current, 'whole'))
      rmSync(join(releases, current, 'cli'), { recursive: true })

      checkout.env['SVC_RUN_ID'] = 'run_3nB7cW1yHsD5jK9q'
      expect(await checkout.svc(['version'])).toContain('.')
      expect(releaseOf(checkout)).toBe(current)
      expect([left, used, running].map((folder) => existsSync(folder))).toEqual([true, true, true])
      delete checkout.env['SVC_RUN_ID']
      utimesSync(join(releases, current, 'checked'), 0, 0)
      await checkout.svc(['version'])
      expect([left, used, running].map((folder) => existsSync(folder))).toEqual([false, true, true])
      process.stdin.end()
    },
  )

test('a pull with other packages under live runs takes nothing away from them, nor from those woken meanwhile', async () => {
  const { folder } = checkout
  checkout.start('svc-server', ['start'])
  const server = await checkout.serverRecord()
  const api = new TestApi(() => server)
  await checkout.svc(['login', '--server', server.url, '--token', '-'], { input: server.token })
  const repo = join(folder, 'repo')
  makeRepo(repo)
  for (const device of devices) {
    mkdirSync(join(folder, device), { mode: 0o700 })
    turnIsolationOff(join(folder, device))
    await checkout.svc(['device', 'connect'], { device })
    await checkout.svc(['device', 'set', '--max-concurrent', '10'], { device })
    await checkout.svc(['folder', 'add', device, repo], { device })
  }
  const { sources } = await api.call<{ sources: { shortId: string }[] }>('GET', '/folders')
  expect(sources).toHaveLength(devices.length)
  const gate = join(folder, 'gate')
  mkdirSync(gate)
  // Asks svc again and again until it is let go, and tells in which phase it began to ask.
  const command = `while [ ! -e ${gate}/go ]; do phase=$(cat ${gate}/phase); svc whoami >/dev/null || exit 3; touch ${gate}/$SVC_RUN_ID.$phase; sleep 2; done`
  const wake = async (count: number) => {
    const agents = await Promise.all(
      sources.flatMap(({ shortId }) =>
        Array.from({ length: count }, (_, at) =>
          api.createAgent({
            name: `${shortId} ${at} of ${count}`,
            harness: 'command',
            defaultFolderId: shortId,
            command,
          }),
        ),
      ),
    )
    return Promise.all(agents.map(({ id }) => api.startRun(id, 'Go on.')))
  }
  const enter = (phase: string) => writeFileSync(join(gate, 'phase'), phase)
  const haveAsked = (ids: readonly string[], phase: string) =>
    ids.every((id) => existsSync(join(gate, `${id}.${phase}`)))
  enter('before')
  const live = await wake(before)
  await waitFor(() => haveAsked(live, 'before'), 'all runs are live', { ms: 60_000 })

  const release = releaseOf(checkout)
  checkout.pull()
  const version = checkout.start('svc', ['version'])
  await waitFor(() => checkout.arePackagesGone, 'npm takes the packages away')
  enter('without')
  const woken = await wake(meanwhile)
  const all = [...live, ...woken]
  await waitFor(() => haveAsked(all, 'without'), 'runs start and go on without the packages', { ms: 60_000 })
  checkout.install()
  expect(await version.said).toMatchObject({
    status: 0,
    stderr: expect.stringContaining('installing packages') as string,
  })
  expect(releaseOf(checkout)).not.toBe(release)

  // What is started from now on is the new release; a daemon that is started anew takes the runs over.
  for (const device of devices) {
    await checkout.svc(['device', 'restart'], { device })
    const started = execFileSync('ps', ['-ww', '-o', 'args=', '-p', String(checkout.daemonPid(device))], {
      encoding: 'utf8',
    })
    expect(started).toContain(join(checkout.code, '.cache/releases', releaseOf(checkout), 'device-manager/main.js'))
  }
  enter('after')
  await waitFor(() => haveAsked(all, 'after'), 'runs go on with the new packages', { ms: 60_000 })
  writeFileSync(join(gate, 'go'), '')
  for (const id of all) expect((await api.waitForRun(id, 'succeeded')).exitReason, id).toBe('completed')
}, 300_000)

test('a daemon is not stopped for a version that does not start', { timeout: 120_000 }, async () => {
  const [device] = allDevices
  const pid = checkout.daemonPid(device)
  const program = join(checkout.code, '.cache/releases', releaseOf(checkout), 'device-manager/main.js')
  const text = readFileSync(program)
  // Behind the line that says what starts it.
  const broken = String(text).replace(/^(#!.*\n)?/, `$1throw new Error('this version is broken')\n`)
  writeFileSync(program, broken)
  const { status, stderr } = await checkout.start('svc', ['device', 'restart'], { device }).said
  expect(status).not.toBe(0)
  expect(stderr).toContain('was not stopped')
  expect(stderr).toContain('this version is broken')
  writeFileSync(program, text)
  expect(await checkout.svc(['device', 'status'], { device })).toContain(`"pid":${pid}`)
  expect(checkout.daemonPid(device)).toBe(pid)
})

const releaseOf = ({ code }: Checkout) => readlinkSync(join(code, '.cache/releases/current'))
