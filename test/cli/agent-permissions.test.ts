import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { TestServer } from '../kit/server.ts'
import { makeHome, type Home } from './run-svc.ts'

// `svc agent permissions list`, `add` and `remove`, and the flags of `agent config set`, by the real program.

let home: Home
let server: TestServer
let agent: string
beforeAll(async () => {
  home = makeHome()
  server = await TestServer.start()
  const login = await home.svc(['login', '--token', '-', '--server', server.url], { input: server.owner.token })
  if (login.status !== 0) throw new Error(login.stderr)
})
afterAll(async () => {
  await server.stop()
  home.remove()
})
beforeEach(async () => {
  agent = (await server.createAgent({ harness: 'claude' })).id
})

const svc = (...line: string[]) => home.svc(['agent', ...line])
const set = (...flags: string[]) => svc('config', 'set', agent, ...flags)
async function tools() {
  return (await server.ok(`/agents/${agent}/config`)).config.permissions.tools
}

test('a second deny rule leaves the first, and what changed is printed', async () => {
  const first = await set('--deny', 'Bash(rm:*)', '--allow', 'Read')
  expect(first.stderr).toBe('svc: added to the deny list: Bash(rm:*)\nsvc: added to the allow list: Read\n')
  const second = await set('--deny', 'Bash(git push:*)')
  expect(second.stderr).toBe('svc: added to the deny list: Bash(git push:*)\n')
  expect(await tools()).toMatchObject({ deny: ['Bash(rm:*)', 'Bash(git push:*)'], allow: ['Read'] })
  expect((await set('--deny', 'Bash(rm:*)')).stderr).toBe('svc: the rules are as they were\n')
})

test('a rule is taken away, a list emptied and a list replaced, each by a flag that says so', async () => {
  await set('--deny', 'Bash(rm:*)', '--deny', 'Bash(mv:*)', '--ask', 'Write')
  const removed = await set('--remove-deny', 'Bash(rm:*)')
  expect(removed.stderr).toBe('svc: removed from the deny list: Bash(rm:*)\n')
  const replaced = await set('--replace-deny', 'Bash(dd:*)')
  expect(replaced.stderr).toBe('svc: removed from the deny list: Bash(mv:*)\nsvc: added to the deny list: Bash(dd:*)\n')
  expect((await set('--deny', 'none')).stderr).toBe('svc: removed from the deny list: Bash(dd:*)\n')
  expect(await tools()).toMatchObject({ deny: [], ask: ['Write'] })
  const both = await set('--deny', 'none', '--deny', 'Bash')
  expect([both.status, both.stderr]).toEqual([2, expect.stringContaining('--deny none stands alone')])
})

test('a rule that cannot be read is refused, and one that names no tool is warned of', async () => {
  const unread = await set('--deny', 'Bash(rm:*')
  expect([unread.status, unread.stderr]).toEqual([
    2,
    expect.stringContaining('cannot be read. Its bracket is not closed'),
  ])
  const unknown = await set('--deny', 'Bsh(rm:*)')
  expect([unknown.status, unknown.stderr]).toEqual([0, expect.stringContaining('warning: The rule Bsh(rm:*)')])
  expect(await tools()).toMatchObject({ deny: ['Bsh(rm:*)'] })
})

test('agent permissions add, list and remove', async () => {
  const added = JSON.parse((await svc('permissions', 'add', agent, '--deny', 'Bash(rm:*)', '--allow', 'Read')).stdout)
  expect(added).toMatchObject({
    object: 'agent_permissions',
    deny: ['Bash(rm:*)'],
    ask: [],
    allow: ['Read'],
    added: [
      { list: 'deny', rule: 'Bash(rm:*)' },
      { list: 'allow', rule: 'Read' },
    ],
    removed: [],
    warnings: [],
  })
  const listed = JSON.parse((await svc('permissions', 'list', agent)).stdout)
  expect(listed).toMatchObject({
    mode: 'full',
    modeFrom: 'default',
    deny: ['Bash(rm:*)'],
    allow: ['Read'],
    warnings: [],
  })
  const unknown = await svc('permissions', 'remove', agent, '--allow', 'Reed')
  expect([unknown.status, unknown.stderr]).toEqual([1, expect.stringContaining('has no rule `Reed`')])
  const removed = await svc('permissions', 'remove', agent, '--allow', 'Read')
  expect(JSON.parse(removed.stdout)).toMatchObject({ allow: [], removed: [{ list: 'allow', rule: 'Read' }] })
  const text = await svc('permissions', 'list', agent, '--output', 'table')
  expect(text.stdout).toBe('mode   full (nobody set another)\ndeny   Bash(rm:*)\nask    -\nallow  -\n')
  expect((await svc('permissions', 'add', agent)).status).toBe(2)
})

test('skill folders are cleared by their word, too', async () => {
  await set('--skill-folder', '~/skills')
  expect((await set('--skill-folder', 'none')).status).toBe(0)
  expect((await server.ok(`/agents/${agent}/config`)).config.runtime.skillFolders).toBeNull()
})
