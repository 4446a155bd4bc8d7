import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { isLong } from '../../kit/forms.ts'
import { waitFor } from '../../kit/programs.ts'
import { Checkout, devices } from './checkout.ts'

// The first command that a person types.

let checkout: Checkout
beforeEach(() => {
  checkout = new Checkout()
})
afterEach(() => checkout.remove())

const done = { status: 'succeeded', exitReason: 'completed', changeSet: { files: 2 } }

/** Runs a job, says that it serves, and ends with Ctrl-C. */
async function startAndServe(...args: string[]): Promise<void> {
  const { child, said, soFar } = checkout.start('start', args)
  await waitFor(() => soFar.stdout.endsWith('\n') || child.exitCode !== null, 'the job is done', {
    // The first time it makes the programs.
    ms: 100_000,
    about: () => soFar.stderr,
  })
  expect(child.exitCode, soFar.stderr).toBe(null)
  expect(JSON.parse(soFar.stdout)).toMatchObject(done)
  const { url } = await checkout.serverRecord()
  keepAddress(url)
  expect((await fetch(`${url}/readyz`)).status).toBe(200)
  expect(await checkout.svc(['run', 'list'])).toContain('succeeded')

  child.kill('SIGINT')
  expect((await said).status, soFar.stderr).toBe(0)
  expect(checkout.daemonPid(devices[0])).toBe(null)
  await expect(fetch(`${url}/readyz`)).rejects.toThrow('fetch failed')
}

/** The device knows the server by its address. */
const keepAddress = (url: string) => (checkout.env['SVC_PORT'] = new URL(url).port)

// It makes the programs and starts everything three times.
test(
  'start --once runs a job and ends, and start then runs one and serves until Ctrl-C',
  { timeout: 240_000 },
  async () => {
    const { status, stdout, stderr } = await checkout.start('start', ['--once']).said
    expect(status, stderr).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject(done)
    keepAddress(/^control plane: (\S+)/m.exec(stderr)![1]!)
    await startAndServe()
    expect(existsSync(`${checkout.env['SVC_DATA_DIR']}-demo/notes`)).toBe(true)

    // The next time it shows nothing, and when its control plane is killed it says so, and ends all that it has started.
    const { child, said, soFar } = checkout.start('start', [])
    const about = () => soFar.stderr
    await waitFor(() => soFar.stderr.includes('Serving until Ctrl-C') || child.exitCode !== null, 'it serves', {
      about,
    })
    expect([soFar.stdout, soFar.stderr]).toEqual(['', expect.stringContaining('scripts/start --demo')])
    const daemon = checkout.daemonPid(devices[0])
    expect(daemon).not.toBe(null)
    process.kill((await checkout.serverRecord()).pid, 'SIGKILL')
    const ended = await said
    const log = join(checkout.env['SVC_DATA_DIR']!, 'server.log')
    expect([ended.status, ended.stderr.trimEnd().split('\n').at(-1)]).toEqual([
      1,
      `start: The control plane ended (SIGKILL). Its log: ${log}`,
    ])
    expect(checkout.daemonPid(devices[0])).toBe(null)
  },
)

// The next time is also what comes after `--once`.
if (isLong)
  test('start runs a job and serves until Ctrl-C, and so the next time', async () => {
    await startAndServe()
    await startAndServe('--demo')
    expect(existsSync(`${checkout.env['SVC_DATA_DIR']}-demo/notes`)).toBe(true)
  })

test('start says in a sentence why this machine cannot be connected', async () => {
  const state = join(checkout.folder, devices[0])
  mkdirSync(state, { recursive: true, mode: 0o700 })
  const identity = { publicId: 'dvc_0000000000000000', deviceId: crypto.randomUUID(), displayName: 'x' }
  writeFileSync(join(state, 'identity.json'), JSON.stringify({ ...identity, server: 'http://127.0.0.1:1' }))
  writeFileSync(join(state, 'device-token'), 'svc_dev_x')
  const { status, stderr } = await checkout.start('start', []).said
  expect(status).toBe(1)
  expect(stderr.trimEnd().split('\n').at(-1)).toBe('start: `scripts/svc device connect` failed, as it says above.')
  expect(stderr).toContain('svc device disconnect --local')
  expect(stderr).not.toMatch(/Command failed|^\s+at /m)
})
