import { createHash } from 'node:crypto'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Skill } from '../../../shared/api/skill-fields.ts'
import { bundleHashText } from '../../../shared/lib/bundle-hash.ts'
import { FakeDevice, enrol } from '../../kit/fake-device.ts'
import { startWithPeople } from '../../kit/people.ts'
import { waitFor } from '../../kit/programs.ts'
import type { Person, TestServer } from '../../kit/server.ts'

// Skills of the workspace in runs: which of them a device is offered, what it may ask for, and what its word changes.

let server: TestServer, admin: Person, member: Person, device: FakeDevice
beforeAll(async () => {
  ;({ server, member } = await startWithPeople())
  admin = await server.addPerson('admin')
  device = await FakeDevice.connect(server, { token: admin.token })
  await set(device, { isWorkspaceDefault: true })
})
afterEach(async () => {
  for (const { id } of (await server.ok('/skills?sourceType=imported')).data)
    await server.ok(`/skills/${id}`, { method: 'DELETE' })
})
afterAll(async () => {
  await device.disconnect()
  await server.stop()
})

const set = (of: FakeDevice, body: object) =>
  server.ok(`/devices/${of.identity.deviceId}`, { method: 'PATCH', body, token: admin.token })
const write = (path: string, method: string, body: unknown, { token }: Person) =>
  server.call(path, { method, body, token, headers: { 'idempotency-key': crypto.randomUUID() } })
const text = (content: string) => ({ files: [{ path: 'SKILL.md', content }] })
let count = 0
async function create(by: Person, content = 'Text.', more: object = {}): Promise<Skill> {
  const body = { slug: `skill-${++count}`, name: 'Skill', bundle: text(content), ...more }
  const reply = await write('/skills', 'POST', body, by)
  expect(reply.status).toBe(201)
  return reply.body as Skill
}
const start = (agentId: string, token = admin.token) =>
  server.ok(`/agents/${agentId}/runs`, { body: {}, token, headers: { 'idempotency-key': crypto.randomUUID() } })

/** Takes the next run of the agent, and ends it. */
async function offered(agentId: string, token = admin.token, of = device) {
  await start(agentId, token)
  const run = await of.take()
  await run.end()
  const { skills, skillsLeftOut } = run.spec
  return {
    run,
    slugs: (skills ?? []).map(({ slug }) => slug),
    leftOut: (skillsLeftOut ?? []).map(({ slug, reason }) => `${slug} ${reason}`),
  }
}
const claude = (more: object = {}, by = admin) =>
  server.createAgent({ harness: 'claude', command: null, ...more }, by.token) as Promise<{ id: string }>
const audit = async (agentId: string) => {
  const reply = await server.ok(`/agents/${agentId}/audit`, { token: admin.token })
  return (reply.audit as { code: string; message: string }[]).filter(({ code }) => code === 'skill_left_out')
}

describe('a device', () => {
  const bundle = (hash: string, token: string | null) =>
    fetch(`${server.url}/api/device/skills/${hash}`, {
      headers: token === null ? {} : { authorization: `Bearer ${token}` },
    })

  test('gets the files of a skill of its workspace, which have the hash that it asked for', async () => {
    const files = [
      { path: 'run.sh', contentBase64: Buffer.from([0, 255]).toString('base64'), executable: true },
      { path: 'SKILL.md', content: 'Text.' },
    ]
    const skill = await create(member, '', { bundle: { files } })
    const reply = await bundle(skill.bundleHash, device.identity.token)
    expect([reply.status, reply.headers.get('cache-control')]).toEqual([200, 'no-store'])
    const bytes = Buffer.from(await reply.arrayBuffer())
    const end = bytes.indexOf(10)
    const head = JSON.parse(bytes.subarray(0, end).toString())
    expect(createHash('sha256').update(bundleHashText(head.files)).digest('hex')).toBe(skill.bundleHash)
    expect(bytes.subarray(end + 1)).toEqual(Buffer.concat([Buffer.from('Text.'), Buffer.from([0, 255])]))
    // A run that was given it before still gets it.
    await write(`/skills/${skill.id}/replace-bundle`, 'POST', { bundle: text('New.') }, member)
    expect((await bundle(skill.bundleHash, device.identity.token)).status).toBe(200)
  })

  test('gets none of another workspace, none that waits for approval, and none without its token', async () => {
    const skill = await create(member)
    const stranger = await enrol(server, { token: (await server.addPerson('owner', 'elsewhere')).token })
    const tokens = [device.identity.token, stranger.token, member.token, 'svc_dev_none', null]
    const statuses = []
    for (const token of tokens) statuses.push((await bundle(skill.bundleHash, token)).status)
    expect(statuses).toEqual([200, 404, 401, 401, 401])
    for (const hash of ['0'.repeat(64), 'x', '..', `${skill.bundleHash}0`, skill.bundleHash.toUpperCase(), ''])
      expect([hash, (await bundle(hash, device.identity.token)).status]).toEqual([hash, 404])
    const posted = await fetch(`${server.url}/api/device/skills/${skill.bundleHash}`, { method: 'POST' })
    expect(posted.status).toBe(404)
  })
})

describe('a run', () => {
  test('is offered what is on for its agent, by the names, with the description of the front matter', async () => {
    const agent = await claude()
    const skills = [
      await create(member, '---\nname: x\ndescription: From the file.\n---\nText.', {
        slug: 'zebra',
        description: 'Not this.',
      }),
      await create(member, 'Text.', { slug: 'ant', description: 'From the row.' }),
      await create(member, 'Text.', { slug: 'off', enabledByDefault: false }),
    ]
    const first = await offered(agent.id)
    expect(first.run.spec.skills).toEqual([
      { slug: 'ant', description: 'From the row.', bundleHash: skills[1]!.bundleHash, fileCount: 1, totalBytes: 5 },
      expect.objectContaining({ slug: 'zebra', description: 'From the file.' }),
    ])
    await write(`/skills/ant/agents/${agent.id}`, 'PUT', { enabled: false }, admin)
    await write(`/skills/off/agents/${agent.id}`, 'PUT', { enabled: true }, admin)
    expect((await offered(agent.id)).slugs).toEqual(['off', 'zebra'])
    const command = await server.createAgent({}, admin.token)
    const none = await offered(command.id)
    expect([none.run.spec.skills ?? null, none.leftOut]).toEqual([null, ['ant harness', 'zebra harness']])
    expect((await audit(command.id))[0]?.message).toContain('ant, zebra: the agent program of the run takes none')
  })

  test('goes without a skill whose writers the device does not follow, also where one of them wrote only the description', async () => {
    const guarded = await FakeDevice.connect(server, { token: admin.token })
    const agent = await claude()
    await set(guarded, { isWorkspaceDefault: true, runsBy: 'owner' })
    await create(admin, 'Own.', { slug: 'own' })
    await create(member, 'Foreign.', { slug: 'foreign' })
    await create(member, 'Washed.', { slug: 'washed' })
    await create(admin, 'Renamed.', { slug: 'renamed' })
    await write('/skills/washed', 'PATCH', { description: 'Mine.' }, admin)
    await write('/skills/renamed', 'PATCH', { description: 'Yours.' }, member)
    const reasons = ['foreign', 'renamed', 'washed'].map((slug) => `${slug} device_refuses_writer`)
    const first = await offered(agent.id, admin.token, guarded)
    expect([first.slugs, first.leftOut.toSorted()]).toEqual([['own'], reasons])
    expect((await audit(agent.id)).map(({ message }) => message)).toContainEqual(
      expect.stringContaining('foreign, renamed, washed: the device does not take the work of whoever wrote it last'),
    )
    await write('/skills/own/replace-bundle', 'POST', { bundle: text('Taken.') }, member)
    expect((await offered(agent.id, admin.token, guarded)).slugs).toEqual([])
    await set(guarded, { runsBy: 'members' })
    expect((await offered(agent.id, admin.token, guarded)).slugs).toEqual(['foreign', 'own', 'renamed', 'washed'])
    await guarded.disconnect()
    await set(device, { isWorkspaceDefault: true })
  })

  test('of a private agent has skills of its owner and of admins alone', async () => {
    const other = await server.addPerson('member')
    const skills = [await create(admin), await create(member), await create(other)]
    const [a, m, o] = skills.map(({ slug }) => slug)
    const agent = await claude({ visibility: 'private' }, member)
    const first = await offered(agent.id, member.token)
    expect([first.slugs, first.leftOut]).toEqual([[a, m], [`${o} private_agent`]])
  })

  test('pins what it was given: the device takes the words of whoever wrote those, not of who wrote since', async () => {
    const guarded = await FakeDevice.connect(server, { token: admin.token })
    const agent = await claude()
    await create(member, 'Foreign.', { slug: 'pinned' })
    await set(guarded, { isWorkspaceDefault: true, runsBy: 'owner', maxConcurrentRuns: 1 })
    await start(agent.id)
    const busy = await guarded.take()
    await start(agent.id)
    await write('/skills/pinned/replace-bundle', 'POST', { bundle: text('Own.') }, admin)
    await write('/skills/pinned', 'PATCH', { description: 'Own.' }, admin)
    await busy.end()
    const waited = await guarded.take()
    expect(waited.spec.skills ?? []).toEqual([])
    await waited.end()
    expect((await offered(agent.id, admin.token, guarded)).slugs).toEqual(['pinned'])
    await guarded.disconnect()
    await set(device, { isWorkspaceDefault: true })
  })
})

describe('what a device says of skills', () => {
  const reasonOf = async ({ id }: Skill) => (await server.ok(`/skills/${id}`)).unavailableReason
  const missedBy = (bundleHash: string) => [{ bundleHash, reason: 'bundle_unreadable' as const }]

  test('counts for those that it was offered, while it has the run, until another run has them', async () => {
    const agent = await claude()
    const [skill, off] = [await create(member, 'A.'), await create(member, 'B.', { enabledByDefault: false })]
    await start(agent.id)
    const run = await device.take()
    const { runId, fence } = run
    const say = (by: FakeDevice, missed: { bundleHash: string; reason: 'bundle_unreadable' }[], at = fence) =>
      by.send({ type: 'run.skills', runId, fence: at, placed: [], missed })
    const liar = await FakeDevice.connect(server, { token: member.token })
    say(liar, missedBy(skill.bundleHash))
    say(device, missedBy(off.bundleHash))
    say(device, missedBy(skill.bundleHash), fence + 1)
    await Promise.all([liar.beat(), device.beat()])
    expect([await reasonOf(skill), await reasonOf(off)]).toEqual([null, null])
    say(device, missedBy(skill.bundleHash))
    await waitFor(async () => (await reasonOf(skill)) === 'bundle_unreadable', 'the skill is said to be missed')
    expect((await audit(agent.id))[0]?.message).toContain(`${skill.slug}: its files are not those`)
    await run.end()
    say(device, [])
    await start(agent.id)
    const next = await device.take()
    expect(next.spec.skills?.map(({ slug, isMissed }) => [slug, isMissed])).toEqual([[skill.slug, true]])
    device.send({ type: 'run.skills', runId: next.runId, fence: next.fence, placed: [skill.bundleHash], missed: [] })
    await waitFor(async () => (await reasonOf(skill)) === null, 'the skill is there again')
    await next.events({
      kind: 'skills',
      data: {
        folders: [],
        workspace: {
          skills: [{ name: skill.slug, version: 'abc' }],
          leftOut: [
            { slug: 'x', reason: 'not_materialized' },
            { slug: 'y', reason: 'of_a_newer_release' },
          ],
        },
        digest: 'd',
      },
    })
    expect(await server.ok(`/runs/${next.runId}/manifest`, { token: admin.token })).toMatchObject({
      skills: [{ id: `workspace/${skill.slug}`, name: skill.slug, version: 'abc' }],
      skillsLeftOut: [
        { name: 'x', reason: 'its files could not be brought to the device' },
        { name: 'y', reason: 'of_a_newer_release' },
      ],
    })
    await next.end()
    await liar.disconnect()
  })

  test('a session that had skills begins anew where none are on any more', async () => {
    const agent = await claude()
    const skill = await create(member)
    const headers = { 'idempotency-key': crypto.randomUUID() }
    const { key } = await server.ok('/tasks', { body: { title: 'x', assignee: agent.id, force: true }, headers })
    const first = await device.take()
    const session = { kind: 'session' as const, data: { sessionId: 's1' } }
    await first.events({ kind: 'skills', data: { folders: [], digest: 'had-one' } }, session)
    await first.end('completed', { sessionId: 's1' })
    await write(`/skills/${skill.id}/agents/${agent.id}`, 'PUT', { enabled: false }, admin)
    await server.ok(`/tasks/${key}/comments`, { body: { body: 'Go on.' }, headers: { 'idempotency-key': 'k2' } })
    const second = await device.take()
    expect(second.spec).toMatchObject({ skills: null, resumeSessionId: 's1', sessionSkills: { digest: 'had-one' } })
    await second.end()
  })
})
