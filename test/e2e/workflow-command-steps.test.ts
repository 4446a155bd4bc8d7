import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { WorkflowRun } from '../../shared/api/workflow-fields.ts'
import { isLong } from '../kit/forms.ts'
import { waitFor } from '../kit/programs.ts'
import { TestSystem } from '../kit/system.ts'

// Commands of programs on a real device, in the folder and by the rules of their agents.

let system: TestSystem
let folder: string
let shortId: string
beforeAll(async () => {
  system = await TestSystem.start()
  folder = join(system.root, 'repo')
  mkdirSync(join(folder, 'sub dir'), { recursive: true })
  symlinkSync(system.root, join(folder, 'out'))
  symlinkSync('sub dir', join(folder, 'in'))
  const { publicId: deviceId } = system.device.identity
  shortId = (await system.api.addFolder({ displayName: 'repo', rootPath: folder, deviceId })).shortId
})
afterAll(() => system.stop())

let made = 0
/** Starts a program with this body, and waits until it is as `is` says. */
async function play(body: string, { mode = 'full', tools = {} }: { mode?: string; tools?: object } = {}) {
  const name = `gates_${made++}`
  const agent = await system.api.createAgent({ name, harness: 'claude', defaultFolderId: shortId })
  const config = { config: { permissions: { tools } } }
  await system.api.call('PUT', `/agents/${agent.id}/config`, config)
  const meta = `export const meta = { name: '${name}', title: 'Gates', toolPermissionMode: '${mode}' }`
  const source = `${meta}\nconst on = { agent: '${agent.id}' }\n${body}`
  await system.api.insist('/workflows/records', { source })
  const { id } = await system.api.insist<{ id: string }>('/workflows/runs', { workflow: name })
  const until = async (is: (run: WorkflowRun) => boolean, what: string): Promise<WorkflowRun> => {
    let last: WorkflowRun | null = null
    const look = async () => {
      last = await system.api.call<WorkflowRun>('GET', `/workflows/runs/${id}`)
      return is(last) ? last : null
    }
    return waitFor(look, what, { ms: 60_000, atMostMs: 250, about: () => JSON.stringify(last, null, 1) })
  }
  const ended = async () => {
    const run = await until(({ status }) => status !== 'running', 'the program ends')
    expect(run, JSON.stringify(run)).toMatchObject({ status: 'completed' })
    return JSON.parse(run.summary!) as unknown
  }
  return { until, ended, agent }
}

test('a command runs in its folder without a terminal and without input, and its status is a result', async () => {
  const { ended, until } = await play(`
    const sh = (script, more) => gate(['sh', '-c', script, 'sh', "it's", '$HOME'], { ...on, ...more })
    const [one, long, slow, unknown] = await Promise.all([
      sh('pwd; cat; echo "$1 $2" >&2; test -t 1; exit 3', { cwd: '${folder}/in/../sub dir', label: 'one' }),
      sh('yes x | head -c 200000; echo end; kill -9 $$'),
      sh('echo begun; sleep 60', { timeoutSeconds: 1 }),
      gate(['no-such-program'], on),
    ])
    return [one, [long.exitCode, long.output.length, long.output.slice(-5)], slow, unknown.exitCode]`)
  const place = join(folder, 'sub dir')
  expect(await ended()).toEqual([
    {
      exitCode: 3,
      output: `${place}\nit's $HOME\n`,
      ranArgv: ['sh', '-c', expect.any(String), 'sh', "it's", '$HOME'],
      timedOut: false,
    },
    [137, 65_536, '\nend\n'],
    { exitCode: null, output: 'begun\n', ranArgv: expect.any(Array), timedOut: true },
    127,
  ])
  const { steps } = await until(() => true, 'it is read')
  expect(steps[0]).toMatchObject({ label: 'one', state: 'done', gate: { exitCode: 3, cwd: place } })
  expect(steps.map(({ run }) => run?.exitReason)).toEqual(['completed', 'completed', 'timeout', 'completed'])
})

test('no command leaves the folder of its agent, whatever its path says', async () => {
  // Each is a run of its own.
  const outside = ['in/../../..', ...(isLong ? ['out', '..', '/', 'sub dir/../..', system.root] : [])]
  const missing = ['none', ...(isLong ? ['file', '-'] : [])]
  writeFileSync(join(folder, 'file'), '')
  const { ended } = await play(`
    const codes = []
    for (const cwd of ${JSON.stringify([...outside, ...missing])})
      await gate(['touch', '${join(system.root, 'escaped')}'], { ...on, cwd }).catch((error) => codes.push(error.code))
    return codes`)
  expect(await ended()).toEqual([...outside.map(() => 'gate_cwd_outside'), ...missing.map(() => 'gate_cwd_missing')])
  expect(existsSync(join(system.root, 'escaped'))).toBe(false)
})

// In the short form the next test has a gate that is denied, harness-all.test.ts one that a person approves, and
// api/databases/workflow-command-steps.test.ts one that a person rejects.
if (isLong) {
  test('the lists and the mode of the agent decide before anything starts, and a person once', async () => {
    const tools = { allow: ['Bash(echo *)'], ask: ['Bash(touch *)'], deny: ['Bash(rm *)'] }
    const { ended, until } = await play(
      `
      const said = await gate(['echo', 'x; $HOME'], on)
      const denied = await gate(['rm', '-r', '.'], on).catch((error) => [error.name, error.code, error.message])
      const hidden = await gate(['sh', '-c', 'r""m -r .'], on).catch((error) => error.code)
      const touched = await gate(['touch', 'made'], { ...on, label: 'touch' })
      const rejected = await gate(['touch', 'other'], on).catch((error) => [error.code, error.message])
      return [said.output, denied, hidden, touched.exitCode, rejected]`,
      { tools },
    )
    const pendingAt = async (step: number) => {
      const run = await until(({ steps }) => steps[step]?.pendingApproval != null, `step ${step} is asked`)
      return run.steps[step]!.pendingApproval!.id
    }
    const first = await pendingAt(3)
    expect(existsSync(join(folder, 'made'))).toBe(false)
    expect(await system.api.call('GET', `/approvals/${first}`)).toMatchObject({
      trigger: 'tool_permission',
      gatedThing: { name: 'Bash', toolArgs: { command: 'touch made' } },
    })
    await system.api.insist(`/approvals/${first}/approve`)
    await system.api.insist(`/approvals/${await pendingAt(4)}/reject`, { reason: 'No.' })
    expect(await ended()).toEqual([
      'x; $HOME\n',
      ['StepError', 'gate_denied', expect.stringContaining('Bash(rm *)')],
      'gate_denied',
      0,
      ['gate_rejected', 'A person rejected the command. They said: No.'],
    ])
    expect(existsSync(join(folder, 'made'))).toBe(true)
    expect(existsSync(join(folder, 'other'))).toBe(false)
  })
}

test('a strict agent starts what a rule allows, and secrets stay out of what a gate gives', async () => {
  const { ended, agent } = await play(
    `
    const none = await gate(['cat', 'README.md'], on).catch((error) => error.code)
    const token = await gate(['printenv', 'SVC_TOKEN'], on)
    return [none, token.output]`,
    { tools: { allow: ['Bash(printenv *)'], defaultMode: 'strict' } },
  )
  const [none, token] = (await ended()) as [string, string]
  expect(none).toBe('gate_denied')
  expect(token.trim()).not.toBe('')
  expect(token).not.toMatch(/ey[A-Za-z0-9_-]{20}/)
  const runs = await system.api.call<{ data: { id: string }[] }>('GET', `/runs?agent=${agent.id}`)
  for (const { id } of runs.data)
    expect(JSON.stringify(await system.api.events(id))).not.toMatch(/ey[A-Za-z0-9_-]{20}\./)
  expect(readFileSync(join(folder, 'file'), 'utf8')).toBe('')
})
