import { expect, test } from 'vitest'
import { useRealServer } from './real-server.ts'

const real = useRealServer()
const config = (...line: string[]) => real.svc(['mcp', 'config', ...line])

test.each([
  ['claude', '"Bearer ${SVC_TOKEN}"'],
  ['codex', 'bearer_token_env_var = "SVC_TOKEN"'],
  ['cursor', '"Bearer ${env:SVC_TOKEN}"'],
  ['opencode', '"Bearer {env:SVC_TOKEN}"'],
])('the settings for %s name the endpoint, and the token by its variable', async (harness, reference) => {
  const { status, stdout, stderr } = await config(harness)
  expect([status, stderr]).toEqual([0, expect.stringContaining('SVC_TOKEN')])
  expect(stdout).toContain(`"${real.server.url}/api/v1/mcp"`)
  expect(stdout).toContain(reference)
  expect(stdout).not.toContain(real.server.owner.token)
  const filled = await config(harness, '--with-token')
  expect(filled.stdout).toContain(`Bearer ${real.server.owner.token}`)
  expect(filled.stdout).not.toContain('SVC_TOKEN')
})

test('what it prints for claude is JSON that reaches the endpoint', async () => {
  const { stdout } = await config('--with-token')
  const { url, headers } = JSON.parse(stdout).mcpServers.svc
  const answer = await fetch(url, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
  })
  expect(await answer.text()).toContain('task_create')
})

test('another harness is refused', async () => {
  const { status, stderr } = await config('vi')
  expect([status, stderr]).toEqual([2, expect.stringContaining('claude, codex, cursor, opencode')])
})
