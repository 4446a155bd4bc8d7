import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestServer } from '../kit/server.ts'
import { makeHome, type Home } from './run-svc.ts'

// The commands of tasks and repos, by the real `svc` against a real server, as an agent and as a person types them.

let home: Home
let server: TestServer
let asAgent: Record<string, string>
let asPerson: Record<string, string>
let agentId: string

beforeAll(async () => {
  home = makeHome()
  server = await TestServer.start()
  agentId = (await server.createAgent({ name: 'Builder' })).id
  const runId = await server.startRun(agentId)
  asAgent = { SVC_TOKEN: await server.runToken(runId), SVC_API_URL: server.url, SVC_RUN_ID: runId }
  const token = ['--token', '-', '--server', server.url]
  const login = await home.svc(['login', ...token], { input: server.owner.token })
  if (login.status !== 0) throw new Error(login.stderr)
  asPerson = {}
})
afterAll(async () => {
  await server.stop()
  home.remove()
})

// oxlint-disable-next-line typescript/no-explicit-any
async function svc(line: string[], more: { env?: Record<string, string>; input?: string } = {}): Promise<any> {
  const end = await home.svc(line, { env: asAgent, cwd: home.dir, ...more })
  if (end.status !== 0) throw new Error(`svc ${line.join(' ')}: ${end.status} ${end.stderr}`)
  return end.stdout === '' ? null : JSON.parse(end.stdout)
}
const refused = async (line: string[]) => {
  const end = await home.svc(line, { env: asAgent, cwd: home.dir })
  return [end.status, JSON.parse(end.stderr).error.code]
}

test('a task is made, found, changed, moved through its states and put away', async () => {
  const blocker = await svc(['task', 'create', '--title', 'First of all'])
  writeFileSync(join(home.dir, 'text.md'), '# What to do')
  const line = ['task', 'create', '--title', 'Paint the shed', '--assignee', 'me', '--depends-on', blocker.key]
  const content = ['--description-file', 'text.md', '--checklist', 'Buy paint', '--checklist', 'Paint']
  const settings = ['--priority', 'high', '--model', 'claude-opus-4-6', '--effort', 'high', '--branch', 'shed']
  const made = await svc([...line, ...content, ...settings])
  expect(made).toMatchObject({
    title: 'Paint the shed',
    description: '# What to do',
    assignee: { id: agentId },
    priority: 'high',
    checklist: [{ text: 'Buy paint' }, { text: 'Paint' }],
    modelId: 'claude-opus-4-6',
    reasoningEffort: 'high',
    branchName: 'shed',
    conditions: [{ type: 'blocked', reason: 'dependency' }],
  })
  expect(await refused(['task', 'create', '--title', 'paint the SHED'])).toEqual([1, 'task_duplicate'])
  const forced = await svc(['task', 'create', '--title', 'paint the SHED', '--force'])
  expect((await svc(['task', 'list', '--q', 'shed'])).data).toHaveLength(2)
  expect((await svc(['task', 'archive', forced.key])).archivedAt).not.toBeNull()
  expect((await svc(['task', 'list', '--q', 'shed'])).data).toHaveLength(1)
  expect((await svc(['task', 'list', '--q', 'shed', '--archived'])).data).toHaveLength(2)
  expect((await svc(['task', 'unarchive', forced.key])).archivedAt).toBeNull()
  const due = await svc(['task', 'update', made.key, '--due-at', '2031-01-01', '--description', 'none'])
  expect(due).toMatchObject({ dueAt: '2031-01-01T00:00:00.000Z', description: null })
  expect(await svc(['task', 'transition', made.key, '--status', 'done', '--comment', 'Dry.'])).toMatchObject({
    status: 'done',
  })
  expect(await refused(['task', 'transition', made.key, '--status', 'open'])).toEqual([1, 'reopen_reason_required'])
  await svc(['task', 'transition', made.key, '--status', 'open', '--reason', 'It peels'])
  const told = await svc(['task', 'get', made.key, '--include', 'dependencies', '--include', 'comments', '--history'])
  expect(told).toMatchObject({
    status: 'open',
    dependencies: { blockedBy: [{ key: blocker.key }] },
    comments: [{ body: 'Dry.' }],
  })
  const kinds = told.history.map((entry: { kind: string }) => entry.kind)
  expect(kinds).toEqual(expect.arrayContaining(['task.created', 'comment.posted', 'task.status_changed']))
  expect((await svc(['task', 'history', made.key, '--limit', '1'])).hasMore).toBe(true)
  expect((await svc(['task', 'activity', made.key, '--limit', '1'])).data[0].data.reason).toBe('It peels')
  expect(await svc(['task', 'read', made.key])).toEqual({ lastReadAt: expect.any(String) })
})

test('a batch comes from a file or from standard input, as an object or a list', async () => {
  writeFileSync(
    join(home.dir, 'tasks.json'),
    '{"tasks":[{"title":"Of a file","ref":"a"},{"title":"Next","dependsOn":["a"]}]}',
  )
  expect((await svc(['task', 'batch', 'tasks.json'])).data).toHaveLength(2)
  expect((await svc(['task', 'batch'], { input: '[{"title":"Of the input"}]' })).data[0].title).toBe('Of the input')
  expect((await svc(['task', 'batch', '-'], { input: '[{"title":"With a dash"}]' })).data).toHaveLength(1)
  for (const input of ['{', '1', 'null'])
    expect((await home.svc(['task', 'batch'], { env: asAgent, input })).status).toBe(2)
  expect((await home.svc(['task', 'batch', 'none.json'], { env: asAgent })).status).toBe(2)
})

test('assign and move take one of two flags', async () => {
  const [one, parent] = [
    await svc(['task', 'create', '--title', 'Carry']),
    await svc(['task', 'create', '--title', 'Whole']),
  ]
  expect((await svc(['task', 'assign', one.key, '--assignee', '@builder'])).assignee.id).toBe(agentId)
  expect((await svc(['task', 'assign', one.key, '--unassign'])).assignee).toBeNull()
  expect((await svc(['task', 'move', one.key, '--parent', parent.key])).parentTaskId).toBe(parent.id)
  expect((await svc(['task', 'list', '--parent', parent.key])).data).toHaveLength(1)
  expect((await svc(['task', 'move', one.key, '--to-root'])).parentTaskId).toBeNull()
  for (const line of [
    ['task', 'assign', one.key],
    ['task', 'assign', one.key, '--assignee', 'me', '--unassign'],
    ['task', 'move', one.key],
    ['task', 'move', one.key, '--parent', parent.key, '--to-root'],
  ])
    expect([line, (await home.svc(line, { env: asAgent })).status]).toEqual([line, 2])
})

test('checklists, dependencies and watchers', async () => {
  const [one, other] = [
    await svc(['task', 'create', '--title', 'Links']),
    await svc(['task', 'create', '--title', 'Else']),
  ]
  const item = await svc(['task', 'checklist', 'add', one.key, 'Look twice'])
  expect(await svc(['task', 'checklist', 'update', one.key, item.id, '--done'])).toMatchObject({ done: true })
  expect(await refused(['task', 'checklist', 'add', one.key, ' '])).toEqual([1, 'invalid_checklist_item'])
  expect((await svc(['task', 'dependency', 'add', one.key, other.key, '--type', 'related'])).type).toBe('related')
  expect((await svc(['task', 'dependency', 'list', one.key])).blockedBy).toMatchObject([{ key: other.key }])
  expect(await refused(['task', 'dependency', 'remove', one.key, other.key, '--type', 'blocks'])).toEqual([
    1,
    'dependency_not_found',
  ])
  await svc(['task', 'dependency', 'remove', one.key, other.key])
  expect((await svc(['task', 'watch', 'add', one.key])).subject).toEqual({ type: 'agent', id: agentId })
  const own = await svc(['task', 'watch', 'add', one.key], { env: asPerson })
  expect(own.subject).toEqual({ type: 'user', id: server.owner.userId })
  expect((await svc(['task', 'watch', 'list', one.key])).data).toHaveLength(2)
  await svc(['task', 'watch', 'remove', one.key, '--id', server.owner.userId])
  await svc(['task', 'watch', 'remove', one.key, '--type', 'agent', '--id', '@builder'])
  expect((await svc(['task', 'watch', 'list', one.key])).data).toEqual([])
  expect((await home.svc(['task', 'watch', 'add', one.key, '--type', 'team'], { env: asAgent })).status).toBe(2)
})

test('repos are added by people and listed by all', async () => {
  const added = await svc(['repo', 'add', 'git@github.com:acme/cli.git', '--default-branch', 'main'], { env: asPerson })
  expect(added).toMatchObject({ name: 'acme/cli', defaultBranch: 'main' })
  expect((await svc(['repo', 'list'])).data).toEqual([added])
  await svc(['repo', 'remove', added.id], { env: asPerson })
  expect((await svc(['repo', 'list'])).data).toEqual([])
})

test('within a run a status that the task has already is no failure, for a person and the route it is', async () => {
  const { key } = await svc(['task', 'create', '--title', 'Oil the hinges'])
  const move = ['task', 'transition', key, '--status', 'in_progress']
  expect(await svc(move)).toMatchObject({ key, status: 'in_progress' })
  const again = await home.svc(move, { env: asAgent })
  expect(again.status).toBe(0)
  expect(JSON.parse(again.stdout)).toMatchObject({ key, status: 'in_progress' })
  expect(again.stderr).toContain('is in_progress already')
  expect(await refused([...move, '--comment', 'I begin.'])).toEqual([1, 'invalid_task_transition'])
  expect((await home.svc(move, { env: asPerson })).status).toBe(1)
  await svc(['task', 'transition', key, '--status', 'done'])
  expect(await refused(move)).toEqual([1, 'invalid_task_transition'])
})
