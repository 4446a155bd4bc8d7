import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { askDaemon } from '../../cli/device/daemon-control.ts'
import { readEnvironment } from '../../cli/machine/environment.ts'
import { devicePlaces } from '../../cli/machine/paths.ts'
import { lowestVersions } from '../../device-manager/harness/parts/lowest-versions.ts'
import { controlValues, type ControlRequest } from '../../shared/device/control.ts'
import { programFile } from '../kit/program-file.ts'
import { turnIsolationOff } from '../kit/wall.ts'
import { makeHome, type Finished, type Home } from './run-svc.ts'

// The commands about this machine's device, against a real control plane and a real daemon; one story in order.

let home: Home
let server: ChildProcess
let serverEnded = false
let isSignedIn = false

beforeAll(async () => {
  home = makeHome()
  mkdirSync(join(home.dir, 'work'))
  mkdirSync(statePath(''), { mode: 0o700 })
  turnIsolationOff(statePath(''))
  const flags = ['--disable-warning=ExperimentalWarning', programFile('control-plane'), 'start', '--port', '0']
  server = spawn(process.execPath, flags, {
    env: { ...home.env, SVC_LOG_LEVEL: 'error' },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  server.on('exit', () => (serverEnded = true))
  await until(() => serverEnded || existsSync(join(home.dir, 'data/server.json')))
  const login = await home.svc(['login'])
  if (serverEnded || login.status !== 0) throw new Error(`the set-up failed: ${login.stderr}`)
  isSignedIn = true
})

afterAll(async () => {
  if (isSignedIn) {
    for (const run of await liveRuns()) await home.svc(['run', 'cancel', run, '--force'])
    await until(async () => (await liveRuns()).length === 0)
    await home.svc(['device', 'disconnect'])
  }
  const pid = daemonPid()
  if (pid !== null) process.kill(pid, 'SIGTERM')
  await until(() => daemonPid() === null)
  server.kill('SIGTERM')
  await until(() => serverEnded)
  home.remove()
}, 60_000)

async function until(isSo: () => boolean | Promise<boolean>, limitMs = 30_000): Promise<void> {
  const giveUpAt = performance.now() + limitMs
  while (!(await isSo())) {
    if (performance.now() > giveUpAt) throw new Error('it did not come to be')
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

const json = (end: Finished) => JSON.parse(end.stdout) as Record<string, unknown>
const statePath = (name: string) => join(home.dir, 'state', name)
const liveRuns = async () => {
  const { data } = json(await home.svc(['run', 'list', '--status', 'running', '--status', 'queued'])) as {
    data: { id: string }[]
  }
  return data.map((run) => run.id)
}

/** What `svc device status` would tell, without a start of it for each look. */
const daemonStatus = async () => askDaemon(await devicePlaces(readEnvironment(home.env)), { op: 'status' })

function daemonPid(): number | null {
  if (!existsSync(statePath('daemon.json'))) return null
  const { pid } = JSON.parse(readFileSync(statePath('daemon.json'), 'utf8')) as { pid: number }
  try {
    process.kill(pid, 0)
    return pid
  } catch {
    return null
  }
}

test('a machine that is no device is told what to type', async () => {
  const end = await home.svc(['device', 'status'])
  expect(end.status).toBe(9)
  expect(json(end)).toMatchObject({ running: false, identity: null, problems: [{ fix: 'svc device connect' }] })
  expect((await home.svc(['device', 'spool'])).status).toBe(9)
  expect((await home.svc(['device', 'logs'])).status).toBe(1)
  expect((await home.svc(['device', 'disconnect'])).status).toBe(0)
})

let publicId: string

test('an identity that cannot be read is told as that', async () => {
  mkdirSync(statePath('identity.json'), { recursive: true })
  const status = await home.svc(['device', 'status'])
  rmdirSync(statePath('identity.json'))
  expect(status.stderr).toContain('The identity of this device cannot be read: EISDIR')
  expect(status.stderr).not.toContain('cli.bug')
})

test('connect enrols the machine, starts the daemon and waits for its link; given again it says so', async () => {
  const end = await home.svc(['device', 'connect', '--name', 'test box'])
  expect(end).toMatchObject({ status: 0 })
  expect(json(end)).toMatchObject({ displayName: 'test box', link: 'connected', pid: daemonPid() })
  publicId = String(json(end)['publicId'])
  expect(statSync(statePath('device-token')).mode & 0o777).toBe(0o600)
  expect(statSync(statePath('identity.json')).mode & 0o777).toBe(0o600)
  const pid = daemonPid()
  const again = await home.svc(['device', 'connect'])
  expect(again).toMatchObject({ status: 0 })
  expect(json(again)).toMatchObject({ publicId, pid })
  const status = json(await home.svc(['device', 'status']))
  const iso = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
  expect(status).toMatchObject({ running: true, link: { state: 'connected' }, runs: [], accepting: true })
  expect(status).toMatchObject({ startedAt: iso, link: { since: iso } })
  const { devices } = json(await home.svc(['device', 'list'])) as { devices: unknown[] }
  expect(devices).toMatchObject([{ publicId, online: true, displayName: 'test box' }])
})

test('a daemon that died is started again without a new enrolment', async () => {
  const token = readFileSync(statePath('device-token'), 'utf8')
  process.kill(daemonPid()!, 'SIGKILL')
  await until(() => daemonPid() === null)
  expect((await home.svc(['device', 'status'])).status).toBe(9)
  expect(json(await home.svc(['device', 'connect']))).toMatchObject({ publicId, link: 'connected' })
  expect(readFileSync(statePath('device-token'), 'utf8')).toBe(token)
})

test('the daemon is asked over its socket: settings, harnesses, spool, a test error that its log then holds', async () => {
  expect((await home.svc(['device', 'set', '--max-concurrent', '2'])).status).toBe(0)
  expect(json(await home.svc(['device', 'sync-config']))).toMatchObject({ displayName: 'test box', capacity: 2 })
  expect((await home.svc(['folder', 'add', 'none', ''])).stderr).toContain('The path is empty.')
  const here = json(await home.svc(['folder', 'add', 'here', home.dir]))
  const elsewhere = join(home.dir, 'elsewhere')
  mkdirSync(elsewhere)
  const gone = json(await home.svc(['folder', 'add', 'gone', elsewhere]))
  rmdirSync(elsewhere)
  const folders = [
    { shortId: here['shortId'], rootPath: home.dir, ok: true, message: null },
    { shortId: gone['shortId'], rootPath: elsewhere, ok: false, message: expect.any(String) },
  ]
  expect(json(await home.svc(['device', 'refresh']))).toMatchObject({
    readiness: { harnesses: { command: { installed: true } } },
    folders,
  })
  const { stdout: forPeople } = await home.svc(['device', 'refresh', '--output', 'table'])
  expect(forPeople).toMatch(/^command\tyes\t/m)
  expect(forPeople).toContain(`${String(here['shortId'])}\t${home.dir}\tyes\t\n`)
  expect(json(await home.svc(['device', 'spool']))).toEqual({ runs: [] })
  expect(json(await home.svc(['device', 'spool', '--replay']))).toEqual({ runs: 0, rows: 0 })
  const report = json(await home.svc(['device', 'test-error', '--message', 'is this seen?']))
  expect(report).toMatchObject({ count: 1, logPath: statePath('logs/daemon.log') })
  await until(async () =>
    (await home.svc(['device', 'logs', '--lines', '20'])).stdout.includes(String(report['errorId'])),
  )
})

/** A codex that only tells its version. */
function installCodex(version: string): void {
  mkdirSync(join(home.dir, 'bin'), { recursive: true })
  writeFileSync(join(home.dir, 'bin/codex'), `#!/bin/sh\necho 'codex-cli ${version}'\n`, { mode: 0o755 })
  writeFileSync(join(home.dir, '.profile'), `PATH=${join(home.dir, 'bin')}:$PATH\n`)
}

test('a harness that is too old is told by device status, the doctor and the run, which goes once it was updated', async () => {
  const { version, update } = lowestVersions.get('codex')!
  installCodex('0.20.0')
  const sentence = `codex 0.20.0 is too old: svc needs ${version} or newer; update it with: ${update}`
  expect(json(await home.svc(['device', 'refresh']))).toMatchObject({
    readiness: { harnesses: { codex: { installed: true, version: '0.20.0', tooOld: true, message: sentence } } },
  })
  const { problems } = json(await home.svc(['device', 'status']))
  expect(problems).toContainEqual({ message: sentence, fix: 'Update codex, then: svc device refresh' })
  const { stdout: forPeople } = await home.svc(['device', 'status', '--output', 'table'])
  expect(forPeople).toContain(`problem   ${sentence}\n`)
  // What is missing is told with the device's own advice, too.
  expect(forPeople).toMatch(/harness {3}cursor {4}not installed: .*cursor\.com\/cli says how to install it\./)
  expect((await home.svc(['agent', 'create', '--name', 'Coder', '--harness', 'codex'])).status).toBe(0)
  const { stdout: audit } = await home.svc(['agent', 'doctor', '@coder'])
  expect(audit).toContain(`codex is too old on test box. test box: ${sentence}`)
  const { runPublicId: runId } = json(await home.svc(['agent', 'run', '@coder', '--prompt', 'x']))
  expect(json(await home.svc(['run', 'get', String(runId)]))).toMatchObject({
    status: 'queued',
    gateReason: 'no_ready_route',
    gateDescription: expect.stringContaining(`test box: ${sentence}`),
  })
  installCodex(version)
  expect(json(await home.svc(['device', 'refresh']))).toMatchObject({
    readiness: { harnesses: { codex: { version, signedIn: true, message: null } } },
  })
  await until(async () => json(await home.svc(['run', 'get', String(runId)]))['status'] !== 'queued')
  expect((await home.svc(['agent', 'doctor', '@coder'])).stdout).not.toContain('too old')
})

test('the daemon keeps to what shared/device/control.ts says of its replies', async () => {
  const places = await devicePlaces(readEnvironment(home.env))
  const requests = [
    { op: 'status' },
    { op: 'refresh' },
    { op: 'sync_config' },
    { op: 'drain', on: true },
    { op: 'drain', on: false },
    { op: 'spool' },
    { op: 'spool_replay' },
    { op: 'test_error' },
  ] as const satisfies ControlRequest[]
  for (const request of requests) {
    const value = await askDaemon(places, request)
    expect(controlValues[request.op].safeParse(value), request.op).toMatchObject({ success: true })
  }
  await expect(askDaemon(places, { op: 'spool_replay', runId: 'run_0000000000000000' })).rejects.toMatchObject({
    code: 'cli.daemon.no_such_run',
    exit: 'refused',
  })
})

test('logs --follow prints what is added', async () => {
  const running = home.start(['device', 'logs', '--lines', '1', '--follow'])
  await running.lines(1)
  const { errorId } = json(await home.svc(['device', 'test-error']))
  for (let count = 2; !(await running.lines(count)).join().includes(String(errorId));) count++
  running.child.kill('SIGTERM')
  await running.finished
})

test('a run goes through: folder, wake, wait, and svc inside the run as its agent', async () => {
  const folder = json(await home.svc(['folder', 'add', 'work', join(home.dir, 'work')]))
  const inside = 'svc whoami; svc run get current; echo "{\\"n\\":1}" | svc run output --file -'
  const line = ['agent', 'create', '--name', 'Worker', '--harness', 'command', '--command', inside]
  expect((await home.svc([...line, '--folder', String(folder['shortId'])])).status).toBe(0)
  const end = await home.svc(['run', 'create', '--agent', '@worker', '--prompt', 'go', '--wait', '60000'])
  expect(end).toMatchObject({ status: 0 })
  const lines = (await home.svc(['run', 'read', String(json(end)['id'])])).stdout.trim().split('\n')
  expect(lines.map((text) => JSON.parse(text) as unknown)).toMatchObject([
    { kind: 'agent', agent: { handle: '@worker' }, runId: json(end)['id'] },
    { id: json(end)['id'], status: 'running' },
    { recorded: true },
  ])
})

test('disconnect names the runs that hold it back; a restart leaves them working', async () => {
  const line = ['agent', 'create', '--name', 'Sleeper', '--harness', 'command', '--command', 'echo up; read line']
  expect((await home.svc(line)).status).toBe(0)
  const wake = json(await home.svc(['agent', 'run', '@sleeper', '--prompt', 'x']))
  const runId = String(wake['runPublicId'])
  const following = home.start(['run', 'events', runId, '--follow'])
  await following.lines(2)
  const refused = await home.svc(['device', 'disconnect'])
  expect(refused.status).toBe(1)
  expect(JSON.parse(refused.stderr)).toMatchObject({ error: { code: 'cli.runs_active', details: { runIds: [runId] } } })
  const draining = home.start(['device', 'restart', '--drain'])
  await until(async () => !(await daemonStatus()).accepting)
  draining.child.kill('SIGKILL')
  await draining.finished
  await until(async () => (await daemonStatus()).accepting)
  const before = daemonPid()
  expect(json(await home.svc(['device', 'restart']))).toMatchObject({ restarted: true, link: 'connected' })
  expect(daemonPid()).not.toBe(before)
  await until(async () => (await daemonStatus()).runs.some((run) => run.runId === runId))
  expect((await home.svc(['run', 'cancel', runId])).status).toBe(0)
  const end = await following.finished
  expect(end.status).toBe(0)
  expect(end.stdout).toContain('"kind":"ended"')
  expect(json(await home.svc(['run', 'get', runId]))).toMatchObject({ status: 'cancelled' })
})

test('disconnect revokes the token and forgets it; connected again this is the same device', async () => {
  const token = readFileSync(statePath('device-token'), 'utf8').trim()
  await until(async () => (await daemonStatus()).runs.length === 0)
  expect(await home.svc(['device', 'disconnect'])).toMatchObject({ status: 0 })
  expect(daemonPid()).toBeNull()
  expect(existsSync(statePath('device-token'))).toBe(false)
  const { url } = JSON.parse(readFileSync(join(home.dir, 'data/server.json'), 'utf8')) as { url: string }
  const answer = await fetch(`${url}/api/device/config`, { headers: { Authorization: `Bearer ${token}` } })
  expect(answer.status).toBe(401)
  expect(json(await home.svc(['device', 'connect']))).toMatchObject({ publicId, link: 'connected' })
})

test('a device that was removed from elsewhere is enrolled anew by connect', async () => {
  const { devices } = json(await home.svc(['device', 'list'])) as { devices: { deviceId: string }[] }
  expect((await home.svc(['device', 'remove', devices[0]!.deviceId])).status).toBe(0)
  await until(() => daemonPid() === null)
  const problemsNow = async () => JSON.stringify(json(await home.svc(['device', 'status']))['problems'])
  expect(await problemsNow()).toMatch(/refused it: .*removed/)
  expect(json(await home.svc(['device', 'connect']))).toMatchObject({ publicId, link: 'connected' })
  expect(await problemsNow()).not.toContain('refused it')
})

test('a device whose server knows nothing of it, as after a restored backup, says so once its daemon has ended', async () => {
  const pid = daemonPid()!
  process.kill(pid, 'SIGTERM')
  await until(() => daemonPid() === null)
  const token = readFileSync(statePath('device-token'), 'utf8')
  writeFileSync(statePath('device-token'), 'svc_dev_unknown\n', { mode: 0o600 })
  const daemon = spawn(process.execPath, [programFile('device-manager'), 'run'], { env: home.env, stdio: 'ignore' })
  expect(await new Promise((resolve) => daemon.once('exit', resolve))).toBe(78)
  const [problem] = json(await home.svc(['device', 'status']))['problems'] as { message: string; fix: string }[]
  expect(problem!.message).toMatch(/refused it: The device token is not known\..* restored from a backup/)
  expect(problem!.fix).toBe('svc device connect')
  writeFileSync(statePath('device-token'), token, { mode: 0o600 })
  expect(json(await home.svc(['device', 'connect']))).toMatchObject({ publicId, link: 'connected' })
})

/** Starts a run that waits for a file, and the daemon anew with a token that its server does not know. */
async function refusedWithRun() {
  const runId = String(json(await home.svc(['agent', 'run', '@patient', '--prompt', 'x']))['runPublicId'])
  const following = home.start(['run', 'events', runId, '--follow'])
  await following.lines(2)
  process.kill(daemonPid()!, 'SIGKILL')
  await until(() => daemonPid() === null)
  writeFileSync(statePath('device-token'), 'svc_dev_unknown\n', { mode: 0o600 })
  const daemon = spawn(process.execPath, [programFile('device-manager'), 'run'], { env: home.env, stdio: 'ignore' })
  await until(() => existsSync(statePath('refused.json')) || daemon.exitCode !== null)
  return { runId, following, daemon }
}

describe('a device whose token its server does not know, as after a restored backup, while a run is live', () => {
  const flag = () => join(home.dir, 'go')
  beforeAll(async () => {
    const command = `echo up; until [ -e ${flag()} ]; do sleep 0.1; done; echo went on`
    await home.svc(['agent', 'create', '--name', 'Patient', '--harness', 'command', '--command', command])
  })

  test('tells so, and the run is whole once the device is connected again', async () => {
    const { runId, following } = await refusedWithRun()
    const { problems, runs } = json(await home.svc(['device', 'status'])) as { problems: object[]; runs: object[] }
    expect(runs).toMatchObject([{ runId }])
    const message = /refuses this device: The device token is not known\. Its live runs go on .* restored/
    expect(problems[0]).toEqual({ message: expect.stringMatching(message), fix: 'svc device connect' })
    expect(json(await home.svc(['device', 'connect']))).toMatchObject({ publicId, link: 'connected' })
    expect(existsSync(statePath('refused.json'))).toBe(false)
    await until(async () => (await daemonStatus()).runs.some((run) => run.runId === runId))
    writeFileSync(flag(), '')
    expect((await following.finished).stdout).toContain('went on')
    expect(json(await home.svc(['run', 'get', runId]))).toMatchObject({ status: 'succeeded' })
    rmSync(flag())
  })

  test('ends its daemon when the run has ended, whose ending is told once the device is connected again', async () => {
    const { runId, following, daemon } = await refusedWithRun()
    writeFileSync(flag(), '')
    await until(() => daemon.exitCode !== null)
    expect(daemon.exitCode).toBe(78)
    expect(json(await home.svc(['run', 'get', runId]))).toMatchObject({ status: 'running' })
    expect(json(await home.svc(['device', 'connect']))).toMatchObject({ publicId, link: 'connected' })
    expect((await following.finished).stdout).toContain('went on')
    expect(json(await home.svc(['run', 'get', runId]))).toMatchObject({ status: 'succeeded' })
  })
})

test('a device that was renamed is called so by its daemon, and by svc while none runs', async () => {
  const { deviceId } = json(await home.svc(['device', 'status']))['identity'] as { deviceId: string }
  const nameOf = async () => {
    const { identity, displayName } = json(await home.svc(['device', 'status']))
    return [(identity as { displayName: string }).displayName, displayName]
  }
  for (const name of ['Renamed', 'Renamed twice']) {
    expect((await home.svc(['api', 'PATCH', `/devices/${deviceId}`, '--field', `displayName=${name}`])).status).toBe(0)
    await until(async () => (await nameOf()).every((each) => each === name))
  }
  process.kill(daemonPid()!, 'SIGTERM')
  await until(() => daemonPid() === null)
  expect(await nameOf()).toEqual(['Renamed twice', undefined])
  const again = await home.svc(['device', 'connect'])
  expect(json(again)).toMatchObject({ displayName: 'Renamed twice' })
  expect(again.stderr).toContain('connected as Renamed twice')
})

test('a terminal that closes ends the daemon in the foreground in its orderly way', async () => {
  expect((await home.svc(['device', 'disconnect'])).status).toBe(0)
  const running = home.start(['device', 'connect', '--foreground'])
  await until(async () => json(await home.svc(['device', 'status']))['running'] === true)
  running.child.kill('SIGHUP')
  expect((await running.finished).status).toBe(0)
  // An orderly end leaves no record of a daemon that runs.
  expect(daemonPid()).toBeNull()
})

test('--foreground keeps the daemon in the terminal until it is told to end', async () => {
  expect((await home.svc(['device', 'disconnect'])).status).toBe(0)
  const running = home.start(['device', 'connect', '--foreground'])
  await until(() => daemonPid() !== null)
  await until(async () => json(await home.svc(['device', 'status']))['running'] === true)
  running.child.kill('SIGTERM')
  expect((await running.finished).status).toBe(0)
  await until(() => daemonPid() === null)
})
