import { afterAll, beforeAll, expect, test } from 'vitest'
import { FakeDevice, type FakeRun } from '../../kit/fake-device.ts'
import { startWithPeople } from '../../kit/people.ts'
import { outcomeOf, type Person, type TestServer } from '../../kit/server.ts'

// Folders of skills of an agent: who sets them, what a run is told of them, and what its record says.

let server: TestServer, member: Person, device: FakeDevice
beforeAll(async () => {
  ;({ server, member } = await startWithPeople())
  device = await FakeDevice.connect(server)
})
afterAll(async () => {
  await device.disconnect()
  await server.stop()
})

const keyed = () => ({ headers: { 'idempotency-key': crypto.randomUUID() } })
const set = (id: string, skillFolders: unknown, token?: string) =>
  server.call(`/agents/${id}/config`, {
    method: 'PUT',
    body: { config: { runtime: { skillFolders } } },
    ...(token === undefined ? {} : { token }),
  })
const given = (digest: string, ...names: string[]) => ({
  kind: 'skills' as const,
  data: {
    folders: [{ folder: '~/skills/', skills: names.map((name) => ({ name, version: '0123456789ab' })) }],
    digest,
  },
})
const session = (sessionId: string) => ({ kind: 'session' as const, data: { sessionId } })

test('they are a setting with a revision, which only the owner and admins change', async () => {
  const agent = await server.createAgent({ skillFolders: ['~/skills', 'team/skills', '/srv/skills'] }, member.token)
  const { config } = await server.ok(`/agents/${agent.id}/config`)
  expect(config.runtime.skillFolders).toEqual(['~/skills', 'team/skills', '/srv/skills'])
  const changed = await set(agent.id, ['~/other'], member.token)
  expect(changed.body.revision).toMatchObject({ changedKeys: ['runtime.skillFolders'] })
  const stranger = await server.addPerson('member')
  expect(outcomeOf(await set(agent.id, ['/tmp'], stranger.token))).toBe('403 http_exception')
  const patched = await server.call(`/agents/${agent.id}`, { method: 'PATCH', body: { skillFolders: ['/tmp'] } })
  expect(outcomeOf(patched)).toBe('400 config_write_forbidden')
  expect((await set(agent.id, null)).body.config.runtime.skillFolders).toBeNull()
  const wrong = [
    [],
    ['..'],
    ['a/../../b'],
    ['~ada/skills'],
    ['a\0b'],
    [''],
    ['é'.repeat(600)],
    Array(17).fill('a'),
    'a',
  ]
  for (const folders of wrong)
    expect([folders, outcomeOf(await set(agent.id, folders))]).toEqual([folders, '400 validation_error'])
})

test('the manifest names what the device told, and the doctor and the manifest what a harness takes none of', async () => {
  const agent = await server.createAgent({ harness: 'claude', command: null, skillFolders: ['~/skills/'] })
  await server.startRun(agent.id)
  const run = await device.take()
  expect(run.spec.skillFolders).toEqual(['~/skills/'])
  const manifest = async () => server.ok(`/runs/${run.runId}/manifest`)
  expect(await manifest()).toMatchObject({ skills: [], ignored: [] })
  await run.events(
    { kind: 'started', data: { harness: 'claude', cwd: '/', argv0: 'claude' } },
    given('d', 'knots', 'ferry'),
  )
  expect((await manifest()).skills).toEqual([
    { id: '~/skills/knots', name: 'knots', version: '0123456789ab' },
    { id: '~/skills/ferry', name: 'ferry', version: '0123456789ab' },
  ])
  await run.end()
  await server.ok(`/agents/${agent.id}/config`, { method: 'PUT', body: { config: { runtime: { harness: 'cursor' } } } })
  const { audit } = await server.ok(`/agents/${agent.id}/audit`)
  expect(audit).toContainEqual({
    code: 'setting_ignored',
    severity: 'warning',
    message: 'Its list of skill folders has no effect: Cursor takes none from svc.',
    param: 'skillFolders',
  })
  await server.startRun(agent.id)
  const ignoring = await device.take()
  expect(await server.ok(`/runs/${ignoring.runId}/manifest`)).toMatchObject({ skills: [], ignored: ['skillFolders'] })
  await ignoring.end()
})

test('a session is gone on with by its skills: the device is told which it has; other folders begin a new one', async () => {
  const agent = await server.createAgent({ harness: 'claude', command: null, skillFolders: ['~/skills/'] })
  const { key } = await server.ok('/tasks', { body: { title: 'Build', assignee: agent.id, force: true }, ...keyed() })
  const next = async (): Promise<FakeRun> => {
    await server.ok(`/tasks/${key}/comments`, { body: { body: 'Go on.' }, ...keyed() })
    return device.take()
  }
  const first = await device.take()
  expect([first.spec.resumeSessionId, first.spec.sessionSkills]).toEqual([null, undefined])
  await first.events(given('digest-1', 'knots'), session('s1'))
  await first.end('completed', { sessionId: 's1' })
  const second = await next()
  expect(second.spec).toMatchObject({ resumeSessionId: 's1', sessionSkills: { digest: 'digest-1' } })
  expect(second.spec.sessionSkills?.promptAnew).toContain('Go on.')
  // Of a release that knew nothing of skills.
  await second.events(session('s1'))
  await second.end('completed', { sessionId: 's1' })
  const third = await next()
  expect(third.spec).toMatchObject({ resumeSessionId: 's1', sessionSkills: { digest: null } })
  await third.events(given('digest-1', 'knots'), session('s2'))
  await third.end('completed', { sessionId: 's2' })
  await set(agent.id, ['~/skills/', '/srv/skills'])
  const other = await next()
  expect([other.spec.resumeSessionId, other.spec.sessionSkills]).toEqual([null, undefined])
  await other.end('completed', { sessionId: 's3' })
})
