import { expect, test } from 'vitest'
import { openSession, serverUrl } from './session.ts'

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

test('inside a run the calls are those of the run, without a look at any file', async () => {
  const run = { apiUrl: 'http://127.0.0.1:1/api/v1', token: 'jwt', runId: 'run_1' }
  const env = { configDir: '/nowhere', stateDir: null, dataDir: null, run, runId: 'run_1', isDebugging: false }
  expect(await openSession(env, null)).toEqual({
    server: 'http://127.0.0.1:1',
    token: 'jwt',
    source: 'run',
    workspaceId: null,
    ownWorkspaceId: null,
  })
})
