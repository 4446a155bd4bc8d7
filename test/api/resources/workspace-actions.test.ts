import { makePage } from '../facts/kit/wiki.ts'
import { makeLearning } from '../facts/kit/learnings.ts'
import { makePlugin, tracker } from '../facts/kit/plugins.ts'
import { makeServer } from '../facts/kit/mcp-servers.ts'
import { upload } from './files-kit.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { addUser } from '../../../control-plane/operator/people.ts'
import { closeCodes } from '../../../shared/device/limits.ts'
import { openStream } from '../../kit/event-stream.ts'
import { enrol, FakeDevice } from '../../kit/fake-device.ts'
import { setPaused } from '../../kit/rows.ts'
import { outcomeOf, TestServer, type Person } from '../../kit/server.ts'
import { nextSlug, workspaceCalls } from './workspaces-kit.ts'
import { isTriedHere } from '../../kit/replicas.ts'

let server: TestServer
beforeAll(async () => {
  server = await TestServer.start()
})
afterAll(() => server.stop())

const { home } = workspaceCalls(() => server)

const act = (person: Person, action: string, prefix = 'workspaces') =>
  server.call(`/${prefix}/${person.workspaceId}/${action}`, { method: 'POST', token: person.token })

async function startedBy(person: Person, agentId: string) {
  return server.ok(`/agents/${agentId}/runs`, { body: {}, token: person.token })
}
const runOf = (person: Person, id: string) => server.ok(`/runs/${id}`, { token: person.token })

test('pausing, resuming, archiving and exporting are for admins', async () => {
  const member = await server.addPerson('member')
  const agent = await server.runToken(await server.startRun((await server.createAgent()).id))
  for (const action of ['pause-agents', 'resume-agents', 'archive', 'export'])
    for (const token of [member.token, agent])
      expect(outcomeOf(await act({ ...member, token }, action))).toBe('403 http_exception')
  expect(await server.ok('/workspaces')).toMatchObject({ agentsPaused: false, status: 'active' })
})

describe('pause', () => {
  test('cancels what waits, lets what works go on, and refuses wakes until resumed', async () => {
    const person = await home('admin')
    const device = await FakeDevice.connect(server, { token: person.token })
    const agent = await server.createAgent({}, person.token)
    const running = (await startedBy(person, agent.id)).runPublicId
    const work = await device.take()
    const offered = (await startedBy(person, agent.id)).runPublicId
    await device.next('run.offer')
    const cloudless = await server.createAgent({ name: 'Waits' }, person.token)
    await server.ok(`/devices/${device.identity.deviceId}`, {
      method: 'PATCH',
      body: { maxConcurrentRuns: 2 },
      token: person.token,
    })
    const queued = (await startedBy(person, cloudless.id)).runPublicId
    const paused = await act(person, 'pause-agents')
    expect([paused.status, paused.body.agentsPaused]).toEqual([200, true])
    for (const id of [offered, queued])
      expect(await runOf(person, id)).toMatchObject({ status: 'cancelled', exitReason: 'company_paused' })
    expect((await device.next('run.withdrawn')).runId).toBe(offered)
    expect(await runOf(person, running)).toMatchObject({ status: 'running' })
    expect(await startedBy(person, agent.id)).toMatchObject({
      kind: 'not_dispatched',
      reason: 'workspace_agents_paused',
    })
    expect((await act(person, 'pause-agents', 'companies')).body).toEqual(paused.body)
    await work.end()
    expect(await runOf(person, running)).toMatchObject({ status: 'succeeded' })
    const resumed = await act(person, 'resume-agents')
    expect(resumed.body.agentsPaused).toBe(false)
    expect((await act(person, 'resume-agents', 'companies')).body).toEqual(resumed.body)
    const again = (await startedBy(person, agent.id)).runPublicId
    await (await device.take()).end()
    expect(await runOf(person, again)).toMatchObject({ status: 'succeeded' })
    // Another workspace was not touched.
    expect((await server.ok('/workspaces')).agentsPaused).toBe(false)
    await device.disconnect()
  })

  test('catches a run that was being queued while the agents were paused', async () => {
    const person = await home()
    const device = await FakeDevice.connect(server, { token: person.token })
    const agent = await server.createAgent({}, person.token)
    const { root } = server.database
    const { runPublicId } = await startedBy(person, agent.id)
    await device.next('run.offer')
    // As if the wake had been admitted before and were committed after the pause.
    await setPaused(server, person.workspaceId)
    const offer = await root('runs').where({ id: runPublicId }).first('fence')
    device.send({
      type: 'run.declined',
      runId: runPublicId,
      fence: (offer as { fence: number }).fence,
      reason: 'capacity',
      message: null,
    })
    await expect.poll(async () => (await runOf(person, runPublicId)).exitReason).toBe('company_paused')
    await device.disconnect()
  })
})

test('an archived workspace stays so and starts no run; its other routes go on working', async () => {
  const person = await home('admin')
  const agent = await server.createAgent({}, person.token)
  const waiting = (await startedBy(person, agent.id)).runPublicId
  const archived = await act(person, 'archive')
  expect(archived.body).toMatchObject({ status: 'archived', agentsPaused: false })
  expect((await act(person, 'archive', 'companies')).body).toEqual(archived.body)
  expect(await runOf(person, waiting)).toMatchObject({ status: 'cancelled', exitReason: 'company_paused' })
  expect(await startedBy(person, agent.id)).toMatchObject({
    kind: 'not_dispatched',
    reason: 'workspace_agents_paused',
  })
  expect((await act(person, 'resume-agents')).body.status).toBe('archived')
  expect((await server.ok('/user/workspaces', { token: person.token })).data[0].status).toBe('archived')
  const renamed = await server.call(`/workspaces/${person.workspaceId}`, {
    method: 'PATCH',
    body: { name: 'Attic' },
    token: person.token,
  })
  expect(renamed.body).toMatchObject({ name: 'Attic', status: 'archived' })
  await server.createAgent({}, person.token)
})

if (isTriedHere)
  test('the export tells of all agents and projects, and keeps text as text', async () => {
    const person = await home('admin')
    const slug = (await server.ok('/workspaces', { token: person.token })).slug
    const member = await server.addPerson('member', slug)
    const chief = await server.createAgent({ name: 'Chief', description: 'Plans', model: 'gpt-5' }, person.token)
    await server.createAgent(
      {
        name: '# Not a heading',
        visibility: 'private',
        reportingTo: chief.id,
        identityMd: 'Do:\n```sh\nls\n```\n# Still not a heading',
      },
      member.token,
    )
    const gone = await server.ok('/projects', { token: person.token, body: { name: 'Gone' } })
    await server.call(`/projects/${gone.id}`, { method: 'DELETE', token: person.token })
    await server.ok('/projects', {
      token: member.token,
      body: {
        name: 'Website',
        prefix: 'WEB',
        description: 'Sells `shoes`',
        leadAgentId: chief.id,
        visibility: 'private',
      },
    })
    await server.ok('/tasks', {
      token: person.token,
      headers: { 'idempotency-key': crypto.randomUUID() },
      body: { title: 'Draw `it`', description: '# Big', startAt: '2040-01-01', assignee: chief.id },
    })
    const source = `export const meta = { name: 'nightly', title: 'At \`night\`' }\nreturn \`\`\`\`\n`
    await server.ok('/workflows/records', {
      token: person.token,
      body: { source: source.replace('return ````', "return '````'") },
    })
    await upload(server, { token: person.token, visibility: 'private' })
    await makePage({ server }, { title: 'How we ship', body: '# First\n```\n# Still\n' }, person.token)
    const { id: draft } = await makePage({ server }, { title: 'Draft', kind: 'csv', body: 'a,b' }, person.token)
    const neverPublished = { current_revision_id: null, token_count: null, archived_at: 1 }
    await server.database.root('wiki_pages').where({ id: draft }).update(neverPublished)
    const bullets = [{ text: 'Use `make`.\n# Now', sources: ['https://example.com/builds'] }]
    await makeLearning({ server }, { token: person.token, topic: '# Builds', bullets })
    await makeServer({ server }, { token: person.token, name: 'tracker', agentId: '@chief' })
    await makePlugin(
      { server },
      { token: person.token, name: 'kit', skills: { notes: 'Write.' }, servers: { tracker } },
    )
    for (const prefix of ['workspaces', 'companies']) {
      const { manifest } = (await act(person, 'export', prefix)).body as { manifest: string }
      const headings = outsideOfFences(manifest).filter((line) => line.startsWith('#'))
      expect(headings).toEqual([
        expect.stringMatching(/^# Workspace `Home/),
        '## Agents (2)',
        '### `Chief`',
        '### `# Not a heading`',
        '## Projects (1)',
        '### `Website`',
        '## Tasks (1)',
        expect.stringMatching(/^### `\w+-1` `` Draw `it` ``$/),
        '## Workflows (1)',
        '### `nightly` `` At `night` ``',
        '## Files (1)',
        '### `notes.txt`',
        '## Wiki (2)',
        '### `How we ship`',
        '### `Draft`',
        '## Learnings (1)',
        '### `# Builds`',
        '## Skills (1)',
        '### `notes`',
        '## Plugins (1)',
        '### `kit`',
        '## Connections (0)',
        '## MCP servers (2)',
        '### `tracker`',
        '### `plugin-kit-tracker`',
      ])
      for (const text of [
        `- Id: \`${person.workspaceId}\``,
        `- Slug: \`${slug}\``,
        '- Handle: `@chief`',
        '- Model: `gpt-5`',
        '- Reports to: `@chief`',
        'Do:\n```sh\nls\n```\n# Still not a heading',
        '- Prefix: `WEB`',
        '- Lead: `@chief`',
        'Sells `shoes`',
        '- Assignee: `@chief`',
        '```markdown\n# Big\n```',
        "`````js\nexport const meta = { name: 'nightly'",
        '- Slug: `how-we-ship`\n- Status: `live`\n\n````markdown\n# First\n```\n# Still\n\n````\n',
        '- Slug: `draft`\n- Status: `archived`\n\nIt was never published.\n',
        '- ``Use `make`. # Now``\n  - `https://example.com/builds`',
      ])
        expect(manifest).toContain(text)
    }
  })

/** Lines of Markdown that are in no fenced block. */
function outsideOfFences(markdown: string): string[] {
  let fence: string | null = null
  return markdown.split('\n').filter((line) => {
    const ticks = /^`{3,}/.exec(line)?.[0] ?? null
    if (fence === null) {
      fence = ticks
      return ticks === null
    }
    if (line === fence) fence = null
    return false
  })
}

test('an export of more agents than a page has them all', async () => {
  const person = await home()
  for (let n = 0; n < 205; n++) await server.createAgent({ name: `Agent ${n}` }, person.token)
  const { manifest } = (await act(person, 'export')).body as { manifest: string }
  const names = [...manifest.matchAll(/^### `Agent (\d+)`$/gm)].map((match) => Number(match[1]))
  expect(names.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 205 }, (_, n) => n))
})

describe('leave', () => {
  test('ends the caller’s tokens, devices and runs there, and nothing elsewhere', async () => {
    const slug = nextSlug()
    const owner = await server.addPerson('owner', slug)
    const member = await server.addPerson('member', slug)
    const { root } = server.database
    const other = await root.transaction((tx) =>
      addUser(tx, server.world, { name: 'x', email: member.email, role: 'member', workspace: 'main' }),
    )
    const agent = await server.createAgent({}, member.token)
    const device = await FakeDevice.connect(server, { token: member.token })
    const running = (await startedBy(member, agent.id)).runPublicId
    await device.take()
    const reply = await act(member, 'leave')
    expect([reply.status, reply.body]).toEqual([200, { workspaceId: member.workspaceId, left: true }])
    expect(outcomeOf(await server.call('/workspaces', { token: member.token }))).toBe('401 auth_invalid')
    expect(await device.closed).toBe(closeCodes.revoked.code)
    expect(await runOf(owner, running)).toMatchObject({ status: 'failed', exitReason: 'runner_lost' })
    const left = (await server.ok('/members', { token: owner.token })).data
    expect(left.map((row: { userId: string }) => row.userId)).toEqual([owner.userId])
    const own = (await server.ok('/user/workspaces', { token: other.token })).data
    expect(own.map((row: { slug: string }) => row.slug)).toEqual(['main'])
    expect((await server.ok(`/agents/${agent.id}`, { token: owner.token })).ownerUserId).toBe(member.uuid)
  })

  test('is not for the owner, nor for agents, nor under the other name', async () => {
    const owner = await home()
    expect(outcomeOf(await act(owner, 'leave'))).toBe('403 http_exception')
    const agent = await server.createAgent({}, owner.token)
    const token = await server.runToken((await startedBy(owner, agent.id)).runPublicId)
    expect(outcomeOf(await act({ ...owner, token }, 'leave'))).toBe('403 agent_no_workspace_access')
    expect(outcomeOf(await act(owner, 'leave', 'companies'))).toBe('404 route_not_found')
    expect((await server.ok('/members', { token: owner.token })).data).toHaveLength(1)
  })
})

describe('delete', () => {
  const remove = (person: Person, body: unknown, prefix = 'workspaces') =>
    server.call(`/${prefix}/${person.workspaceId}`, { method: 'DELETE', body, token: person.token })

  test('takes the very name, and the owner', async () => {
    const slug = nextSlug()
    const owner = await server.addPerson('owner', slug)
    const admin = await server.addPerson('admin', slug)
    const { name } = await server.ok('/workspaces', { token: owner.token })
    expect(outcomeOf(await remove(admin, { confirmName: name }))).toBe('403 http_exception')
    const agent = await server.createAgent({}, owner.token)
    const token = await server.runToken((await startedBy(owner, agent.id)).runPublicId)
    expect(outcomeOf(await remove({ ...owner, token }, { confirmName: name }))).toBe('403 http_exception')
    for (const body of [{}, { confirmName: name.toLowerCase() }, { confirmName: '' }, { confirmName: null }]) {
      const reply = await remove(owner, body)
      expect(outcomeOf(reply)).toBe('400 validation_error')
      expect(reply.body.error.details.fields).toMatchObject([{ path: 'confirmName' }])
    }
    expect((await server.call('/workspaces', { token: owner.token })).status).toBe(200)
  })

  test('removes everything: runs end, devices are told, tokens are dead, the slug stays reserved', async () => {
    const slug = nextSlug()
    const owner = await server.addPerson('owner', slug)
    const member = await server.addPerson('member', slug)
    const { name } = await server.ok('/workspaces', { token: owner.token })
    const agent = await server.createAgent({}, owner.token)
    const project = await server.ok('/projects', { token: owner.token, body: { name: 'p', leadAgentId: agent.id } })
    const device = await FakeDevice.connect(server, { token: owner.token })
    const away = await enrol(server, { token: member.token })
    const run = (await startedBy(owner, agent.id)).runPublicId
    const work = await device.take()
    await work.events({ kind: 'text', data: { text: 'hello' } })
    await startedBy(owner, agent.id)
    const stream = await openStream(server, `/runs/${run}/events`, { authorization: `Bearer ${owner.token}` })
    await stream.take(1)
    const reply = await remove(owner, { confirmName: name }, 'companies')
    expect([reply.status, reply.body]).toEqual([
      200,
      { billing: { companyDeleted: true, subscriptionCancelled: false } },
    ])
    expect((await stream.rest()).at(-1)).toMatchObject({ event: 'end', data: { runId: run } })
    expect(await device.closed).toBe(closeCodes.revoked.code)
    for (const identity of [device.identity, away])
      expect(closeCodes.auth_failed.code).toBe(await (await FakeDevice.open(server, identity)).closed)
    for (const token of [owner.token, member.token, work.token])
      expect(outcomeOf(await server.call('/workspaces', { token }))).toBe('401 auth_invalid')
    const { root } = server.database
    await expect.poll(() => root('workspaces').where({ id: owner.workspaceId })).toEqual([])
    for (const [table, column, id] of [
      ['runs', 'id', run],
      ['run_frames', 'run_id', run],
      ['run_details', 'run_id', run],
      ['agents', 'id', agent.id],
      ['projects', 'id', project.id],
      ['members', 'user_id', owner.uuid],
      ['workspaces', 'id', owner.workspaceId],
    ] as const)
      expect([table, await root(table).where({ [column]: id })]).toEqual([table, []])
    // The people are still known, and no other workspace gets the slug.
    expect((await server.call('/workspaces', { body: { name: 'x', slug } })).status).toBe(409)
    expect(outcomeOf(await server.call(`/workspaces/by-slug/${slug}`))).toBe('404 resource_not_found')
    await expect(server.addPerson('owner', slug)).rejects.toThrow('reserved')
  })

  test('leaves the company while it has another workspace', async () => {
    const owner = await home()
    const { root } = server.database
    const second = await home()
    const company = (await root('workspaces').where({ id: owner.workspaceId }).first('company_id')) as {
      company_id: string
    }
    await root('workspaces').where({ id: second.workspaceId }).update(company)
    const nameOf = async (person: Person) => (await server.ok('/workspaces', { token: person.token })).name as string
    expect((await remove(owner, { confirmName: await nameOf(owner) })).body.billing.companyDeleted).toBe(false)
    expect((await server.ok('/user/workspaces', { token: second.token })).data[0].companyId).toBe(company.company_id)
    expect((await remove(second, { confirmName: await nameOf(second) })).body.billing.companyDeleted).toBe(true)
    await expect.poll(() => root('companies').where({ id: company.company_id })).toEqual([])
  })
})
