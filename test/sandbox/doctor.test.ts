import { isLong } from '../kit/forms.ts'
import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, inject, onTestFinished, test } from 'vitest'
import { engineClient, hasNoEngine } from '../kit/sandboxes.ts'

// `svc-server sandbox doctor`, as an operator types it.

const run = promisify(execFile)
const program = join(import.meta.dirname, '../../control-plane/main.ts')

async function doctor(settings: Record<string, string>) {
  const data = mkdtempSync(join(tmpdir(), 'svc-d-'))
  onTestFinished(() => rmSync(data, { recursive: true, force: true }))
  const env = { PATH: process.env['PATH']!, SVC_DATA_DIR: data, ...settings }
  const args = ['--disable-warning=ExperimentalWarning', program, 'sandbox', 'doctor']
  const told = await run(process.execPath, args, { env }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (error: { code: number; stdout: string; stderr: string }) => error,
  )
  return { code: told.code, lines: told.stdout.trimEnd().split('\n'), stderr: told.stderr, data }
}

const docker = (socket: string) => ({ SVC_SANDBOX: 'docker', SVC_SANDBOX_SOCKET: socket })

async function leftOvers(): Promise<unknown[]> {
  const client = engineClient()
  const filters = JSON.stringify({ name: ['svc-trial-'] })
  const found = await client.call({ method: 'GET', path: '/containers/json', query: { all: '1', filters } })
  const volumes = await client.call({ method: 'GET', path: '/volumes', query: { filters } })
  const { Volumes } = JSON.parse(volumes.body.toString()) as { Volumes: unknown[] | null }
  return [...(JSON.parse(found.body.toString()) as unknown[]), ...(Volumes ?? [])]
}

test.skipIf(hasNoEngine)(
  'an engine with its image, its limits and its walls is good, and nothing stays on it',
  async () => {
    const { code, lines, stderr, data } = await doctor(docker(inject('sandboxEngine')!.socket))
    expect(lines.filter((line) => !line.startsWith('ok'))).toEqual([])
    expect([code, stderr]).toEqual([0, ''])
    expect(lines.map((line) => line.slice(8, 30).trim())).toEqual(
      expect.arrayContaining(['engine', 'image', 'limits', 'trial', 'wall connect_outside', 'wall other_run']),
    )
    expect(await leftOvers()).toEqual([])
    expect(readdirSync(data)).toEqual([])
  },
)

if (isLong)
  test.skipIf(hasNoEngine)('an image that is not there, or a runtime, is named', async () => {
    const settings = docker(inject('sandboxEngine')!.socket)
    const noImage = await doctor({ ...settings, SVC_SANDBOX_IMAGE: 'svc-nothing' })
    expect(noImage.code).toBe(1)
    expect(noImage.lines.at(-1)).toMatch(/^FAILED {2}image +The engine has no image svc-nothing/)
    const noRuntime = await doctor({ ...settings, SVC_SANDBOX_RUNTIME: 'runsc' })
    expect(noRuntime.lines.find((line) => line.includes('limits'))).toMatch(/^FAILED.*no runtime runsc/)
    expect(noRuntime.stderr).toMatch(/of \d+ checks failed\.\n$/)
    expect(await leftOvers()).toEqual([])
  })

test('an engine that does not answer, and none, is said', async () => {
  const { code, lines, stderr } = await doctor(docker('/nowhere/docker.sock'))
  expect([code, lines]).toEqual([
    1,
    [expect.stringMatching(/^FAILED {2}engine +The engine at \/nowhere\/docker.sock cannot/)],
  ])
  expect(stderr).toBe('1 of 1 checks failed.\n')
  expect((await doctor({})).stderr).toMatch(/^Cloud runs are off/)
})
