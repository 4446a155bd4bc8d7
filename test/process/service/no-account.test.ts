import { spawn, execFile, execFileSync } from 'node:child_process'
import {
  chownSync,
  constants,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { programFile } from '../../kit/program-file.ts'
import { waitFor } from '../../kit/programs.ts'

// A device manager under a number that is in no list of users, as containers have it (`docker run --user 54321`).

const nobody = 54_321
/** Programs and Node where this user may go: the checkout may lie where only root does. */
let shared: string
beforeAll(() => {
  shared = mkdtempSync(join(tmpdir(), 'svc-shared-'))
  const release = dirname(dirname(programFile('cli')))
  cpSync(release, join(shared, 'release'), { recursive: true, dereference: true, mode: constants.COPYFILE_FICLONE })
  copyFileSync(process.execPath, join(shared, 'node'), constants.COPYFILE_FICLONE)
  execFileSync('chmod', ['-R', 'a+rX', shared])
})
afterAll(() => rmSync(shared, { recursive: true, force: true }))

let home: string
beforeEach(({ skip }) => {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) skip('only root can become such a user')
  home = mkdtempSync(join(tmpdir(), 'svc-nobody-'))
  chownSync(home, nobody, nobody)
})
afterEach(() => rmSync(home, { recursive: true, force: true, maxRetries: 5 }))

const become = ['setpriv', `--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups']
const node = () => [join(shared, 'node'), '--disable-warning=ExperimentalWarning']
const program = (name: 'cli' | 'device-manager') => join(shared, 'release', name, 'main.js')
const environment = () => ({ PATH: '/usr/bin:/bin', HOME: home, SVC_STATE_DIR: join(home, 'state') })

function runs(args: readonly string[], env: Record<string, string>) {
  const [file, ...rest] = [...become, ...node(), ...args]
  return new Promise<{ status: unknown; stdout: string; stderr: string }>((resolve) =>
    execFile(file!, rest, { env, cwd: '/' }, (error, stdout, stderr) =>
      resolve({ status: error === null ? 0 : error.code, stdout, stderr }),
    ),
  )
}

function put(name: string, content: string): void {
  writeFileSync(join(home, 'state', name), content, { mode: 0o600 })
  chownSync(join(home, 'state', name), nobody, nobody)
}

test('the daemon starts, and svc hears from it', async () => {
  mkdirSync(join(home, 'state'), { mode: 0o700 })
  chownSync(join(home, 'state'), nobody, nobody)
  const identity = {
    publicId: 'dev_1',
    deviceId: crypto.randomUUID(),
    displayName: 'none',
    server: 'http://127.0.0.1:9',
  }
  put('identity.json', JSON.stringify(identity))
  put('device-token', 'svc_dev_none')
  const [file, ...args] = [...become, ...node(), program('device-manager'), 'run']
  const daemon = spawn(file, args, { env: environment(), cwd: '/', stdio: 'ignore' })
  const ended = new Promise((resolve) => daemon.once('exit', resolve))
  onTestFinished(async () => {
    daemon.kill('SIGTERM')
    await ended
  })
  await waitFor(() => existsSync(join(home, 'state/daemon.sock')), 'the daemon listens')
  const { stdout } = await runs([program('cli'), 'device', 'status'], environment())
  expect(JSON.parse(stdout)).toMatchObject({ running: true })
})

test('the service and a machine without a home folder are told in a sentence', async () => {
  const service = await runs([program('device-manager'), 'service', 'status'], environment())
  expect(JSON.parse(service.stdout)).toHaveProperty('ok')
  const { HOME: _, ...homeless } = environment()
  const { status, stderr } = await runs([program('device-manager'), 'run'], homeless)
  expect(stderr).not.toMatch(/^\s+at /m)
  expect([status, stderr]).toEqual([78, expect.stringContaining('Set HOME.')])
})
