import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { svcSkill } from '../../../shared/runs/svc-skill.ts'
import { FakeDevice } from '../../kit/fake-device.ts'
import { startWithPeople } from '../../kit/people.ts'
import { outcomeOf, type Person, type TestServer } from '../../kit/server.ts'
import { makePluginSkill } from '../facts/kit/plugins.ts'
import { makeSkill, newBundle, newSlug } from '../facts/kit/skills.ts'
import { agentCalls } from './agent-calls-kit.ts'

// The skill `svc`, which every workspace has.

let server: TestServer, member: Person
beforeAll(async () => {
  ;({ server, member } = await startWithPeople())
})
afterAll(() => server.stop())

const { agentCaller } = agentCalls(() => ({ server, member }))
const call = (path: string, method: string, body?: unknown, token = member.token) =>
  server.call(path, { method, token, ...(body !== undefined && { body }) })
const slugs = async (query = '', token = member.token) =>
  (await server.ok(`/skills${query}`, { token })).data.map(({ slug }: { slug: string }) => slug)

describe('it is a skill like others', () => {
  test('with its file, read by its slug and its id', async () => {
    const skill = await server.ok('/skills/svc', { token: member.token })
    expect(skill).toMatchObject({
      object: 'skill',
      slug: 'svc',
      name: 'svc',
      description: svcSkill.description,
      version: 1,
      sourceType: 'builtin',
      enabledByDefault: true,
      fileCount: 1,
      totalBytes: Buffer.byteLength(svcSkill.file),
      plugin: null,
      activation: { description: svcSkill.description, allowedTools: [] },
      files: [{ path: 'SKILL.md', kind: 'instruction', executable: false }],
      source: { type: 'builtin', label: null },
      share: { isShareable: false, latestShareId: null },
    })
    expect(await server.ok(`/skills/${skill.id}`, { token: member.token })).toEqual(skill)
    const file = await server.ok('/skills/svc/files/content?path=SKILL.md')
    expect(file).toMatchObject({ content: svcSkill.file, truncated: false })
    expect(outcomeOf(await call('/skills/svc/files/content?path=other', 'GET'))).toBe('404 skill_file_not_found')
    expect((await server.ok('/skills/svc/shares')).data).toEqual([])
  })

  test('in lists by their filters, as the oldest, page by page in both directions', async () => {
    const mine = (await server.addPerson('owner', 'pages')).token
    for (const slug of ['a', 'b']) await makeSkill({ server }, { slug, token: mine })
    expect(await slugs('', mine)).toEqual(['b', 'a', 'svc'])
    expect(await slugs('?sort=installedAt', mine)).toEqual(['svc', 'a', 'b'])
    for (const [sort, expected] of [
      ['', ['b', 'a', 'svc']],
      ['&sort=installedAt', ['svc', 'a', 'b']],
    ] as const)
      for (const limit of [1, 2, 3]) {
        const seen: string[] = []
        for (let after = ''; ;) {
          const page = await server.ok(`/skills?limit=${limit}${sort}${after}`, { token: mine })
          seen.push(...page.data.map(({ slug }: { slug: string }) => slug))
          if (!page.hasMore) break
          expect(page.data).toHaveLength(limit)
          after = `&after=${page.nextCursor}`
        }
        expect([sort, limit, seen]).toEqual([sort, limit, expected])
      }
    for (const [query, expected] of [
      ['sourceType=builtin', ['svc']],
      ['sourceType=imported', ['b', 'a']],
      ['sourceType=repo', []],
      ['plugin=none', []],
      ['enabledByDefault=false', []],
      ['q=LEARNINGS', ['svc']],
      ['q=%25', []],
    ] as const)
      expect([query, await slugs(`?${query}`, mine)]).toEqual([query, expected])
    const agent = await server.createAgent({}, mine)
    const rows = (await server.ok(`/skills/agents/${agent.id}?limit=2`, { token: mine })) as { nextCursor: string }
    const rest = await server.ok(`/skills/agents/${agent.id}?limit=2&after=${rows.nextCursor}`, { token: mine })
    expect(rest).toMatchObject({ data: [{ slug: 'svc', effectiveEnabled: true }], hasMore: false })
  })

  test('turned off and on for the workspace and for an agent', async () => {
    const agent = await server.createAgent({}, member.token)
    const path = `/skills/svc/agents/${agent.id}`
    const row = async () =>
      (await server.ok(`/skills/agents/${agent.id}`)).data.find(({ slug }: { slug: string }) => slug === 'svc')
    expect(await row()).toMatchObject({ enabled: null, workspaceEnabled: true, effectiveEnabled: true })
    expect((await call(path, 'PUT', { enabled: false })).body).toMatchObject({
      enabled: false,
      effectiveEnabled: false,
    })
    const off = await call('/skills/svc', 'PATCH', { enabledByDefault: false })
    expect(off.body).toMatchObject({ enabledByDefault: false, version: 1 })
    expect((await call('/skills/svc', 'PATCH', { enabledByDefault: false })).body).toEqual(off.body)
    expect(await server.ok('/skills/svc')).toEqual(off.body)
    expect(await slugs('?enabledByDefault=false')).toContain('svc')
    expect((await call(path, 'PUT', { enabled: true })).body).toMatchObject({ enabled: true, workspaceEnabled: false })
    for (let times = 0; times < 2; times++) expect((await call(path, 'DELETE')).status).toBe(204)
    expect(await row()).toMatchObject({ enabled: null, workspaceEnabled: false, effectiveEnabled: false })
    await call('/skills/svc', 'PATCH', { enabledByDefault: true })
    // Another workspace has its own.
    const stranger = await server.addPerson('owner', 'elsewhere')
    await call('/skills/svc', 'PATCH', { enabledByDefault: false }, stranger.token)
    expect(await server.ok('/skills/svc')).toMatchObject({ enabledByDefault: true })
    expect(outcomeOf(await call(path, 'PUT', { enabled: false }, stranger.token))).toBe('404 skill_not_found')
  })

  test('that many may turn at the same moment', async () => {
    const agent = await server.createAgent({}, member.token)
    const turns = Array.from({ length: 8 }, (_, at) => [
      call('/skills/svc', 'PATCH', { enabledByDefault: at % 2 === 0 }),
      call(`/skills/svc/agents/${agent.id}`, 'PUT', { enabled: at % 2 === 0 }),
    ])
    expect(new Set((await Promise.all(turns.flat())).map(({ status }) => status))).toEqual(new Set([200]))
    await call('/skills/svc', 'PATCH', { enabledByDefault: true })
  })
})

test('nobody replaces, renames, removes, shares or makes it', async () => {
  const { token } = await agentCaller()
  const { id } = await server.ok('/skills/svc')
  for (const ref of ['svc', id])
    for (const by of [member.token, token])
      expect(
        [
          await call(`/skills/${ref}`, 'PATCH', { name: 'Other' }, by),
          await call(`/skills/${ref}`, 'PATCH', { description: null, enabledByDefault: false }, by),
          await call(`/skills/${ref}/replace-bundle`, 'POST', { bundle: newBundle() }, by),
          await call(`/skills/${ref}`, 'DELETE', undefined, by),
        ].map(outcomeOf),
      ).toEqual([...Array(3).fill('409 skill_replace_forbidden'), '409 builtin_skill_delete_forbidden'])
  expect(outcomeOf(await call('/skills/svc/share', 'POST', {}))).toBe('409 skill_share_forbidden')
  const made = (body: object) => call('/skills', 'POST', { name: 'x', bundle: newBundle(), ...body })
  expect(outcomeOf(await made({ slug: 'svc' }))).toBe('409 duplicate_skill_slug')
  expect(outcomeOf(await made({ slug: newSlug(), source: { type: 'builtin' } }))).toBe('400 validation_error')
  expect(await server.ok('/skills/svc')).toMatchObject({ name: 'svc', enabledByDefault: true })
})

test('an agent turns it for itself alone, and asks a person to turn it for the workspace', async () => {
  const { agent, token } = await agentCaller()
  const foreign = await server.createAgent({}, member.token)
  expect((await call('/skills/svc/agents/me', 'PUT', { enabled: false }, token)).body).toMatchObject({ enabled: false })
  expect((await call(`/skills/svc/agents/${agent.id}`, 'DELETE', undefined, token)).status).toBe(204)
  expect(outcomeOf(await call(`/skills/svc/agents/${foreign.id}`, 'PUT', { enabled: false }, token))).toBe(
    '403 agent_self_only',
  )
  const asked = await call('/skills/svc', 'PATCH', { enabledByDefault: false }, token)
  expect(asked.status).toBe(202)
  expect(await server.ok('/skills/svc')).toMatchObject({ enabledByDefault: true })
  const headers = { 'idempotency-key': crypto.randomUUID() }
  await server.ok(`/approvals/${asked.body.approvalId}/approve`, { body: {}, token: member.token, headers })
  expect(await server.ok('/skills/svc')).toMatchObject({ enabledByDefault: false })
  await call('/skills/svc', 'PATCH', { enabledByDefault: true })
})

describe('another skill of its slug', () => {
  test('that the workspace had before stays, in its place', async () => {
    const { token } = await server.addPerson('owner', 'older')
    const builtin = await server.ok('/skills/svc', { token })
    await call('/skills/svc', 'PATCH', { enabledByDefault: false }, token)
    const own = await makeSkill({ server }, { token })
    await server.database.root('skills').where({ id: own.id }).update({ slug: 'svc' })
    expect(await server.ok('/skills/svc', { token })).toMatchObject({ id: own.id, sourceType: 'imported' })
    expect(await slugs('', token)).toEqual(['svc'])
    expect(outcomeOf(await call(`/skills/${builtin.id}`, 'GET', undefined, token))).toBe('404 skill_not_found')
    expect((await call('/skills/svc/replace-bundle', 'POST', { bundle: newBundle('Ours') }, token)).status).toBe(200)
    expect((await call('/skills/svc', 'DELETE', undefined, token)).status).toBe(204)
    expect(await server.ok('/skills/svc', { token })).toMatchObject({ sourceType: 'builtin', enabledByDefault: false })
  })

  test('that a plugin brings is another one', async () => {
    const { token } = await server.addPerson('owner', 'plugged')
    const builtin = await server.ok('/skills/svc', { token })
    const ofPlugin = await makePluginSkill({ server }, { token, slug: 'svc' })
    const ambiguous = await call('/skills/svc', 'GET', undefined, token)
    expect(ambiguous.body.error).toMatchObject({
      code: 'ambiguous_skill_ref',
      details: { candidates: [ofPlugin.id, builtin.id] },
    })
    expect(await server.ok(`/skills/${builtin.id}`, { token })).toEqual(builtin)
  })
})

test('a run has it where its program takes skills, and not where it is off or has another one', async () => {
  const owner = await server.addPerson('owner', 'running')
  const { token } = owner
  const device = await FakeDevice.connect(server, { token })
  await server.ok(`/devices/${device.identity.deviceId}`, {
    method: 'PATCH',
    body: { isWorkspaceDefault: true },
    token,
  })
  const newAgent = (more: object) => server.createAgent({ command: null, ...more }, token) as Promise<{ id: string }>
  const hasIt = async ({ id }: { id: string }) => {
    const headers = { 'idempotency-key': crypto.randomUUID() }
    await server.ok(`/agents/${id}/runs`, { body: {}, token, headers })
    const run = await device.take()
    await run.end()
    return [run.spec.hasSvcSkill ?? false, run.spec.skills ?? null, run.spec.skillsLeftOut ?? null]
  }
  const [has, hasNot] = [
    [true, null, null],
    [false, null, null],
  ]
  const claude = await newAgent({ harness: 'claude' })
  for (const harness of ['claude', 'codex', 'opencode'])
    expect([harness, await hasIt(await newAgent({ harness }))]).toEqual([harness, has])
  expect(await hasIt(await newAgent({ harness: 'cursor' }))).toEqual(hasNot)
  expect(await hasIt(await server.createAgent({}, token))).toEqual(hasNot)

  const path = `/skills/svc/agents/${claude.id}`
  await call(path, 'PUT', { enabled: false }, token)
  expect(await hasIt(claude)).toEqual(hasNot)
  await call('/skills/svc', 'PATCH', { enabledByDefault: false }, token)
  await call(path, 'DELETE', undefined, token)
  expect(await hasIt(claude)).toEqual(hasNot)
  await call(path, 'PUT', { enabled: true }, token)
  expect(await hasIt(claude)).toEqual(has)

  const { id, pluginId } = await makePluginSkill({ server }, { token, slug: 'svc' })
  expect(await hasIt(claude)).toEqual(has)
  await call(`/skills/${id}/agents/${claude.id}`, 'PUT', { enabled: true }, token)
  expect(await hasIt(claude)).toEqual([false, [expect.objectContaining({ slug: 'svc' })], null])
  await server.database.root('plugins').where({ id: pluginId }).update({ enabled: 0 })
  expect(await hasIt(claude)).toEqual(has)
  const own = await makeSkill({ server }, { token, enabledByDefault: false })
  await server.database.root('skills').where({ id: own.id }).update({ slug: 'svc' })
  expect(await hasIt(claude)).toEqual(hasNot)
  await device.disconnect()
})
