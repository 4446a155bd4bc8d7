import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { useLogin } from './login-file.ts'
import { callerOf } from './caller.ts'
import { serverUrl } from './server-url.ts'

test.each([
  ['http://127.0.0.1:4400/', 'http://127.0.0.1:4400'],
  ['svc.example.com:8080', 'http://svc.example.com:8080'],
  ['https://svc.example.com/api/v1', 'https://svc.example.com'],
  ['https://example.com/svc/api/v1/', 'https://example.com/svc'],
  ['ftp://example.com', null],
  ['https://user@example.com', null],
  ['https://', null],
])('%s is the server %s', (text, expected) => {
  expect(serverUrl(text)).toBe(expected)
})

test('inside a run, calls use the token of the run and no file is read', async () => {
  const run = { apiUrl: 'http://127.0.0.1:1/api/v1', token: 'jwt', runId: 'run_1' }
  const env = {
    configDir: '/nowhere',
    stateDir: null,
    dataDir: null,
    run,
    person: null,
    runId: 'run_1',
    isDebugging: false,
    hasColours: null,
    hasPalette: false,
  }
  expect(await callerOf(env, null)).toEqual({
    server: 'http://127.0.0.1:1',
    token: 'jwt',
    source: 'run',
    workspaceId: null,
    ownWorkspaceId: null,
  })
})

test('inside a run, the login of the machine is never read, even if environment variables are missing', async () => {
  const configDir = mkdtempSync(join(tmpdir(), 'svc-caller-'))
  onTestFinished(() => rmSync(configDir, { recursive: true }))
  writeFileSync(
    join(configDir, 'login.json'),
    JSON.stringify({ server: 'http://127.0.0.1:1', token: 'svc_pat_person' }),
  )
  const outside = {
    configDir,
    stateDir: null,
    dataDir: null,
    run: null,
    person: null,
    runId: null,
    isDebugging: false,
    hasColours: null,
    hasPalette: false,
  }
  expect(await callerOf(outside, null)).toMatchObject({ token: 'svc_pat_person', source: 'login' })
  // A program of a person without a login file; it counts more than the file.
  const person = { apiUrl: 'http://127.0.0.1:2', token: 'svc_pat_program' }
  expect(await callerOf({ ...outside, person }, null)).toMatchObject({
    token: person.token,
    server: person.apiUrl,
    source: 'login',
  })
  const refused = { exit: 'not_signed_in', code: 'cli.within_run' }
  await expect(callerOf({ ...outside, runId: 'run_1' }, null)).rejects.toMatchObject(refused)
  const run = { apiUrl: null, token: 'jwt', runId: 'run_1' }
  await expect(callerOf({ ...outside, run, runId: 'run_1' }, null)).rejects.toMatchObject({ code: 'cli.no_server' })
  const login = { server: 'http://127.0.0.1:1', token: 'svc_pat_other', workspace: null }
  await expect(useLogin({ ...outside, runId: 'run_1' }, login)).rejects.toMatchObject(refused)
  expect(readFileSync(join(configDir, 'login.json'), 'utf8')).toContain('svc_pat_person')
})
