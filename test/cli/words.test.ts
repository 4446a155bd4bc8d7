import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { waitFor } from '../kit/programs.ts'
import { refusal } from './api-server.ts'
import { onTerminal } from './on-terminal.ts'
import { makeServedHome, runId, type ServedHome } from './served-home.ts'

// What svc says to whoever mistypes, asks for help, or is about to take something away.

let home: ServedHome
beforeEach(() => {
  home = makeServedHome()
})
afterEach(() => home.close())

/** Has a login of a server that answers so, and returns what it receives. */
async function signIn(answer: Parameters<ServedHome['serve']>[0]) {
  const { url: server, received } = await home.serve(answer)
  mkdirSync(join(home.dir, 'config'), { recursive: true })
  writeFileSync(join(home.dir, 'config/login.json'), JSON.stringify({ server, token: 'svc_pat_x' }))
  return received
}

test('svc alone says where to begin, on less than a screen', async () => {
  const alone = await home.svc([])
  expect(alone).toMatchObject({ status: 0, stderr: '' })
  expect(alone.stdout.split('\n').length).toBeLessThan(40)
  expect(alone.stdout).toContain('svc help ')
  expect((await home.svc(['--help'])).stdout).toBe(alone.stdout)
  expect((await home.svc(['help'])).stdout.split('\n').length).toBeGreaterThan(200)
})

test.each([
  [['tsk', 'list'], 'Did you mean `svc task`?'],
  [['task', 'lsit'], 'Did you mean `svc task list`?'],
  [['agent', 'config', 'gte'], 'Did you mean `svc agent config get`?'],
  [['run', 'list', '--statsu', 'queued'], 'There is no flag --statsu.\nDid you mean `--status`?'],
  [['run', 'list', '--no-such-flag'], 'There is no flag --no-such-flag.\n'],
  [['device', 'connect', '--no-forground'], 'There is no flag --no-forground.\nDid you mean `--no-foreground`?'],
])('svc %j: %s', async (line, said) => {
  const end = await home.svc([...line, '--output', 'table'])
  expect([end.status, end.stdout]).toEqual([2, ''])
  expect(end.stderr).toContain(said)
})

test('a refusal says what to do in a sentence, a remediation of another release by its name', async () => {
  const env = await home.inRun(({ path }) =>
    refusal(404, 'resource_not_found', { remediation: path.includes('run_') ? 'check_id' : 'look_up' }),
  )
  const told = await home.svc(['run', 'get', 'current', '-o', 'table'], { env })
  expect(told.stderr).toContain('\nCheck the id or the name: nothing that you may see has it.\n')
  expect((await home.svc(['agent', 'get', 'me', '-o', 'table'], { env })).stderr).toContain('\n  fix: look_up\n')
  const json = await home.svc(['run', 'get', 'current'], { env })
  expect(JSON.parse(json.stderr)).toMatchObject({ error: { remediation: 'check_id' } })
})

test('a cancel that is under way is called so', async () => {
  const env = await home.inRun(() => ({ body: { object: 'run', id: runId, status: 'running', waitingOn: null } }))
  const end = await home.svc(['run', 'cancel', 'current'], { env })
  expect(end.stderr).toBe(
    `svc: ${runId} is being cancelled: its device has its agent stop, and then ends what goes on. \`svc run watch ${runId}\` shows its end.\n`,
  )
  // To a program the status is what the server says.
  expect(JSON.parse(end.stdout)).toMatchObject({ status: 'running' })
  const tsv = await home.svc(['run', 'cancel', 'current', '-o', 'tsv'], { env })
  expect(tsv.stdout).toContain('running')
  expect(tsv.stdout).not.toContain('being')
})

test('to a person a run that is being cancelled is shown so', async () => {
  await signIn(() => ({ body: { object: 'run', id: runId, status: 'running', waitingOn: null } }))
  const terminal = onTerminal(home, ['run', 'cancel', runId])
  expect(await terminal.ended, terminal.shown.text).toBe(0)
  expect(terminal.shown.text).toContain('being cancelled\r\n')
  expect(terminal.shown.text).not.toContain('running')
})

describe('what nothing brings back', () => {
  const line = ['secret', 'delete', 'sec_7kP2nV5xQbD8rM1c']
  test.each([
    ['y\r', 0, 1],
    ['\r', 1, 0],
    ['\x03', 1, 0],
  ])('is asked about on a terminal: %j', async (typed, status, deleted) => {
    const received = await signIn(() => ({ status: 204 }))
    const terminal = onTerminal(home, line)
    try {
      const asked = 'svc secret delete sec_7kP2nV5xQbD8rM1c: go on? [y/N]'
      await waitFor(() => terminal.shown.text.includes(asked), 'it asks', { about: () => terminal.shown.text })
      terminal.type(typed)
      expect(await terminal.ended, terminal.shown.text).toBe(status)
    } finally {
      terminal.kill()
    }
    expect(received.filter(({ method }) => method === 'DELETE')).toHaveLength(deleted)
  })

  test('is done at once with --yes, and where nobody can be asked', async () => {
    const received = await signIn(() => ({ status: 204 }))
    expect(await onTerminal(home, [...line, '--yes']).ended).toBe(0)
    expect((await home.svc(line)).status).toBe(0)
    expect((await home.svc([...line, '--yes'])).status).toBe(0)
    expect(received.filter(({ method }) => method === 'DELETE')).toHaveLength(3)
  })
})
