import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startWithPeople } from '../../kit/people.ts'
import { outcomeOf, type Person, type TestServer } from '../../kit/server.ts'
import { makePluginSkill } from '../facts/kit/plugins.ts'
import { makeSkill, newBundle, newSlug, skillMd } from '../facts/kit/skills.ts'
import { agentCalls } from './agent-calls-kit.ts'

let server: TestServer, member: Person, other: Person
beforeAll(async () => {
  ;({ server, member, other } = await startWithPeople())
})
afterAll(() => server.stop())

const { agentCaller } = agentCalls(() => ({ server, member }))
const call = (path: string, method: string, body?: unknown, token = member.token) =>
  server.call(path, { method, token, ...(body !== undefined && { body }) })
const create = (files: unknown, token = member.token) =>
  call('/skills', 'POST', { slug: newSlug(), name: 'Skill', bundle: { files } }, token)
const approve = (approvalId: string) =>
  server.call(`/approvals/${approvalId}/approve`, {
    body: {},
    token: member.token,
    headers: { 'idempotency-key': crypto.randomUUID() },
  })

describe('a skill', () => {
  test('is kept as it was sent, and read file by file', async () => {
    const bytes = Buffer.from([0, 255, 1])
    const slug = newSlug()
    const reply = await call('/skills', 'POST', {
      slug,
      name: 'Release notes',
      bundle: {
        files: [
          { path: 'scripts/run.sh', content: '#!/bin/sh\n', executable: true },
          { path: 'assets/logo.png', contentBase64: bytes.toString('base64') },
          { path: 'SKILL.md', content: skillMd() },
          { path: 'empty.txt', content: '' },
        ],
      },
    })
    expect(reply.status).toBe(201)
    const file = (path: string, sizeBytes: number, executable = false) => ({
      path,
      kind: path === 'SKILL.md' ? 'instruction' : 'reference',
      sizeBytes,
      executable,
    })
    const size = skillMd().length
    expect(reply.body).toEqual({
      object: 'skill',
      id: expect.stringMatching(/^[0-9A-Za-z]{16}$/),
      slug,
      name: 'Release notes',
      description: 'Writes release notes.',
      version: 1,
      sourceType: 'imported',
      enabledByDefault: true,
      fileCount: 4,
      totalBytes: size + 13,
      skillMdTokenCount: Math.ceil(size / 4),
      plugin: null,
      unavailableReason: null,
      installedAt: expect.any(String),
      updatedAt: expect.any(String),
      namespace: null,
      bundleHash: expect.stringMatching(/^[0-9a-f]{64}$/),
      activation: { description: 'Writes release notes.', allowedTools: ['Read', 'Bash(git log *)'] },
      files: [
        file('SKILL.md', size),
        file('assets/logo.png', 3),
        file('empty.txt', 0),
        file('scripts/run.sh', 10, true),
      ],
      source: { type: 'imported', label: null },
      share: { isShareable: true, latestShareId: null },
    })
    expect(await server.ok(`/skills/${slug}?expand[]=plugin`, { token: other.token })).toEqual(reply.body)
    const read = (path: string) => server.ok(`/skills/${slug}/files/content?path=${path}`)
    expect(await read('SKILL.md')).toMatchObject({ content: skillMd(), contentBase64: null, truncated: false })
    expect(await read('assets/logo.png')).toMatchObject({ content: null, contentBase64: 'AP8B' })
    expect(await read('scripts/run.sh')).toMatchObject({ content: '#!/bin/sh\n', executable: true })
    expect(await read('empty.txt')).toMatchObject({ content: '', sizeBytes: 0 })
  })

  test('has the same hash for the same files in another order', async () => {
    const files = [
      { path: 'SKILL.md', content: 'x' },
      { path: 'a.md', content: 'y' },
    ]
    const [one, same, run] = [
      await create(files),
      await create(files.toReversed()),
      await create([files[0], { ...files[1], executable: true }]),
    ]
    expect(one.body.bundleHash).toBe(same.body.bundleHash)
    expect(one.body.bundleHash).not.toBe(run.body.bundleHash)
  })

  test('shows the first MiB of a longer file, without half a character', async () => {
    const { body } = await create([
      { path: 'SKILL.md', content: 'x' },
      { path: 'long.txt', content: `x${'ü'.repeat(600_000)}` },
    ])
    const long = await server.ok(`/skills/${body.id}/files/content?path=long.txt`)
    expect(long).toMatchObject({ truncated: true, sizeBytes: 1_200_001 })
    expect(long.content).toBe(`x${'ü'.repeat(524_287)}`)
  })

  test('is listed newest first, by its filters, page by page', async () => {
    const mark = newSlug()
    const ids: string[] = []
    for (const n of [1, 2, 3])
      ids.push((await makeSkill({ server }, { slug: `${mark}-${n}`, enabledByDefault: n !== 2 })).id)
    const list = async (query: string) =>
      (await server.ok(`/skills?q=${mark}&${query}`)).data.map((one: { id: string }) => one.id)
    expect(await list('')).toEqual(ids.toReversed())
    expect(await list('sort=installedAt')).toEqual(ids)
    expect(await list('enabledByDefault=false')).toEqual([ids[1]])
    expect(await list('sourceType=imported')).toHaveLength(3)
    expect(await list('sourceType=repo')).toEqual([])
    expect(await list('plugin=none')).toEqual([])
    const first = await server.ok(`/skills?q=${mark}&sort=installedAt&limit=2`)
    expect(await list(`sort=installedAt&limit=2&after=${first.nextCursor}`)).toEqual([ids[2]])
    const plugin = await makePluginSkill({ server })
    for (const reference of [plugin.pluginId, plugin.pluginName])
      expect((await server.ok(`/skills?plugin=${reference}`)).data).toMatchObject([
        { id: plugin.id, plugin: { id: plugin.pluginId, enabled: true } },
      ])
  })

  test('changes name, description and files; nothing of it is the time of a change that changes nothing', async () => {
    const skill = await makeSkill({ server })
    const renamed = await call(`/skills/${skill.id}`, 'PATCH', { name: 'Other', description: null })
    expect(renamed.body).toMatchObject({ name: 'Other', description: null, version: 1 })
    const same = await call(`/skills/${skill.id}`, 'PATCH', { name: 'Other' })
    expect(same.body.updatedAt).toBe(renamed.body.updatedAt)
    const replaced = await call(`/skills/${skill.id}/replace-bundle`, 'POST', { bundle: newBundle('Other') })
    expect(replaced.body).toMatchObject({ version: 2, fileCount: 1 })
    expect(replaced.body.bundleHash).not.toBe(skill.bundleHash)
    expect((await call(`/skills/${skill.id}`, 'DELETE')).status).toBe(204)
    expect(outcomeOf(await call(`/skills/${skill.id}`, 'GET'))).toBe('404 skill_not_found')
    // Its slug is free again.
    expect((await call('/skills', 'POST', { slug: skill.slug, name: 'x', bundle: newBundle() })).status).toBe(201)
  })

  test('is neither built in nor of a plugin by the word of a caller, and takes no reserved slug', async () => {
    for (const source of [{ type: 'builtin' }, { type: 'plugin' }, { type: 'repo' }])
      expect(
        outcomeOf(await call('/skills', 'POST', { slug: newSlug(), name: 'x', source, bundle: newBundle() })),
      ).toBe('400 validation_error')
    const marketplace = {
      slug: newSlug(),
      name: 'x',
      source: { type: 'marketplace', label: 'Shop' },
      bundle: newBundle(),
    }
    expect((await call('/skills', 'POST', marketplace)).body.source).toEqual({ type: 'marketplace', label: 'Shop' })
    for (const slug of ['agents', 'shared', 'Upper', 'a b', '', 'x'.repeat(65), '../x'])
      expect(outcomeOf(await call('/skills', 'POST', { slug, name: 'x', bundle: newBundle() }))).toBe(
        '400 validation_error',
      )
  })
})

describe('a bundle is refused', () => {
  const md = { path: 'SKILL.md', content: 'x' }
  const matter = (yaml: string) => [{ path: 'SKILL.md', content: `---\n${yaml}\n---\nText` }]
  const cases: [string, unknown[]][] = [
    ['without files', []],
    ['without SKILL.md', [{ path: 'a.md', content: 'x' }]],
    ['with SKILL.md in a folder only', [{ path: 'a/SKILL.md', content: 'x' }]],
    ['with skill.md in small letters', [{ path: 'skill.md', content: 'x' }]],
    ['of 10,000 files', [md, ...Array.from({ length: 9_999 }, (_, at) => ({ path: `${at}`, content: '' }))]],
    ['with a path twice', [md, md]],
    ['with twins by case', [md, { path: 'a.md', content: '' }, { path: 'A.md', content: '' }]],
    ['with twins by form', [md, { path: '\u00fc', content: '' }, { path: 'u\u0308', content: '' }]],
    ['that leaves its folder', [md, { path: '../x', content: '' }]],
    ['with an absolute path', [md, { path: '/x', content: '' }]],
    ['with a device of Windows', [md, { path: 'aux.md', content: '' }]],
    ['with a file that has no content', [md, { path: 'a' }]],
    ['with a file of two contents', [md, { path: 'a', content: '', contentBase64: '' }]],
    ['that is not base64', [md, { path: 'a', contentBase64: 'A' }]],
    ['with blanks in base64', [md, { path: 'a', contentBase64: 'AA A' }]],
    ['whose SKILL.md is not UTF-8', [{ path: 'SKILL.md', contentBase64: Buffer.from([0xff]).toString('base64') }]],
    ['whose SKILL.md is over a MiB', [{ path: 'SKILL.md', content: 'x'.repeat(1_048_577) }]],
    ['whose front matter has no end', [{ path: 'SKILL.md', content: '---\nname: x\n' }]],
    ['with an alias', matter('name: &a x\ndescription: *a')],
    ['with an anchor', matter('name: &a x')],
    ['with a tag', matter('name: !!str x')],
    ['with a foreign tag', matter('name: !js/function x')],
    ['with a key twice', matter('name: x\nname: y')],
    ['with a bad name', matter('name: a--b')],
    ['with a name in capitals', matter('name: Abc')],
    ['with a long description', matter(`description: ${'x'.repeat(1_025)}`)],
    ['with tools that are no texts', matter('allowed-tools: [1, 2]')],
    ['with front matter that is a list', matter('- a')],
    ['with front matter that is no YAML', matter('a: [b')],
    ['with front matter of 100,000 brackets', matter('['.repeat(100_000))],
    ['with front matter of 16,000 brackets', matter(`a: ${'['.repeat(16_000)}`)],
    ['with keys that are lists', matter('? [a]\n: b')],
    ['with a document after it', matter('name: x\n...\nname: y')],
  ]
  test.each(cases)('%s', async (_, files) => {
    expect(outcomeOf(await create(files))).toBe('400 invalid_skill_bundle')
  })

  test('and leaves no bytes behind', async () => {
    const { root } = server.database
    const owned = async () => Number(((await root('blobs').count({ n: '*' }).first()) as { n: unknown }).n)
    const before = await owned()
    await create([])
    const { slug } = await makeSkill({ server })
    await call('/skills', 'POST', { slug, name: 'x', bundle: newBundle() })
    expect(await owned()).toBe(before + 1)
  })

  test('but not for what else its front matter says', async () => {
    const { body, status } = await create(
      matter(
        'name: x\ndescription: >\n  Two\n  lines.\nallowed-tools:\n  - Read\n  - Bash(x)\nlicense: MIT\nmetadata:\n  a: 1',
      ),
    )
    expect(status).toBe(201)
    expect(body.activation).toEqual({ description: 'Two lines.', allowedTools: ['Read', 'Bash(x)'] })
  })
})

describe('what an agent has', () => {
  const rowOf = async (agent: string, skill: string) =>
    (await server.ok(`/skills/agents/${agent}`)).data.find((row: { skillId: string }) => row.skillId === skill)

  test('follows the workspace, else its own override', async () => {
    const agent = await server.createAgent({}, member.token)
    const { id } = await makeSkill({ server })
    expect(await rowOf(agent.id, id)).toMatchObject({
      enabled: null,
      workspaceEnabled: true,
      pluginEnabled: null,
      effectiveEnabled: true,
    })
    const path = `/skills/${id}/agents/${agent.id}`
    expect((await call(path, 'PUT', { enabled: false })).body).toMatchObject({
      enabled: false,
      effectiveEnabled: false,
    })
    await call(`/skills/${id}`, 'PATCH', { enabledByDefault: false })
    expect((await call(path, 'PUT', { enabled: true })).body).toMatchObject({
      enabled: true,
      workspaceEnabled: false,
      effectiveEnabled: true,
    })
    for (let times = 0; times < 2; times++) expect((await call(path, 'DELETE')).status).toBe(204)
    expect(await rowOf(agent.id, id)).toMatchObject({ enabled: null, effectiveEnabled: false })
  })

  test('needs the plugin of the skill to be on', async () => {
    const agent = await server.createAgent({}, member.token)
    const { id } = await makePluginSkill({ server })
    const path = `/skills/${id}/agents/${agent.id}`
    expect((await call(path, 'PUT', { enabled: true })).body).toMatchObject({
      pluginEnabled: true,
      effectiveEnabled: true,
    })
    await server.database.root('plugins').update({ enabled: 0 })
    expect(await rowOf(agent.id, id)).toMatchObject({ enabled: true, pluginEnabled: false, effectiveEnabled: false })
  })

  test('of a private agent is seen by who sees the agent', async () => {
    const agent = await server.createAgent({ visibility: 'private' }, member.token)
    const { id } = await makeSkill({ server })
    const answers = [
      await call(`/skills/agents/${agent.id}`, 'GET', undefined, other.token),
      await call(`/skills/${id}/agents/${agent.id}`, 'PUT', { enabled: true }, other.token),
      await call(`/skills/${id}/agents/${agent.id}`, 'DELETE', undefined, other.token),
    ]
    expect(answers.map(outcomeOf)).toEqual(Array(3).fill('404 skill_not_found'))
  })
})

describe('an agent', () => {
  test('adds a skill that is on for itself alone', async () => {
    const { agent, token } = await agentCaller()
    const { body, status } = await call(
      '/skills',
      'POST',
      { slug: newSlug(), name: 'Mine', bundle: newBundle() },
      token,
    )
    expect([status, body.enabledByDefault]).toEqual([201, false])
    const rows = (await server.ok(`/skills/agents/me`, { token })).data
    expect(rows.find((row: { skillId: string }) => row.skillId === body.id)).toMatchObject({
      enabled: true,
      effectiveEnabled: true,
    })
    expect((await call(`/skills/${body.id}/agents/${agent.id}`, 'PUT', { enabled: false }, token)).status).toBe(200)
    const foreign = await server.createAgent({}, member.token)
    for (const method of ['PUT', 'DELETE'])
      expect(outcomeOf(await call(`/skills/${body.id}/agents/${foreign.id}`, method, { enabled: true }, token))).toBe(
        '403 agent_self_only',
      )
  })

  test('asks for changes, of which the approved ones are made, exactly', async () => {
    const { token } = await agentCaller()
    const skill = await makeSkill({ server })
    const path = `/skills/${skill.id}`
    const asked = await call(`${path}/replace-bundle`, 'POST', { bundle: newBundle('Asked') }, token)
    expect([asked.status, asked.body]).toEqual([
      202,
      { object: 'platform_change', approvalId: expect.any(String), status: 'pending' },
    ])
    const { approvalId } = asked.body
    const approval = await server.ok(`/approvals/${approvalId}`, { token: member.token })
    expect(JSON.stringify(approval)).toContain('"SKILL.md"')
    expect(JSON.stringify(approval)).not.toContain('Asked')
    // Who may approve reads what they approve, and the agent that asks does not.
    const { files } = await server.ok(`/approvals/${approvalId}?include[]=files`, { token: member.token })
    expect(files.find((file: { path: string }) => file.path.endsWith('SKILL.md'))).toMatchObject({
      content: skillMd('Asked'),
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      truncated: false,
    })
    expect((await server.ok(`/approvals/${approvalId}?include[]=files`, { token })).files).toBeNull()
    // What others do meanwhile does not change what was asked for.
    await call(`${path}/replace-bundle`, 'POST', { bundle: newBundle('Between') })
    expect((await approve(approvalId)).status).toBe(200)
    const now = await server.ok(path)
    expect(now.version).toBe(3)
    expect((await server.ok(`${path}/files/content?path=SKILL.md`)).content).toBe(skillMd('Asked'))
    const off = await call(path, 'PATCH', { enabledByDefault: false }, token)
    expect(off.status).toBe(202)
    expect((await approve(off.body.approvalId)).status).toBe(200)
    expect((await server.ok(path)).enabledByDefault).toBe(false)
    const gone = await call(path, 'DELETE', undefined, token)
    expect((await approve(gone.body.approvalId)).status).toBe(200)
    expect(outcomeOf(await call(path, 'GET'))).toBe('404 skill_not_found')
  })

  test('stages files that are shown as far as they are text, and not too long', async () => {
    const { token } = await agentCaller()
    const files = [
      ...newBundle('Long').files,
      { path: 'data.bin', contentBase64: Buffer.from([0, 1, 2]).toString('base64') },
      ...Array.from({ length: 12 }, (_, at) => ({ path: `text-${10 + at}.txt`, content: 'é'.repeat(150_000) })),
    ]
    const skill = await makeSkill({ server })
    const asked = await call(`/skills/${skill.id}/replace-bundle`, 'POST', { bundle: { files } }, token)
    const path = `/approvals/${asked.body.approvalId}?include[]=files`
    const shown = (await server.ok(path, { token: member.token })).files as { path: string; content: string | null }[]
    expect(shown).toHaveLength(files.length)
    expect(shown.find((file) => file.path.endsWith('data.bin'))).toMatchObject({ content: null, truncated: false })
    const texts = shown.filter((file) => file.path.includes('text-'))
    expect(texts[0]).toMatchObject({ content: 'é'.repeat(131_072), sizeBytes: 300_000, truncated: true })
    expect(texts.at(-1)).toMatchObject({ content: null, truncated: true })
    expect(Buffer.byteLength(shown.map(({ content }) => content ?? '').join(''))).toBeLessThanOrEqual(2_097_152)
    expect((await approve(asked.body.approvalId)).status).toBe(200)
    expect((await server.ok(path, { token: member.token })).files).toBeNull()
  })

  test('cannot have what it staged taken by another request, and what is rejected is removed', async () => {
    const { token } = await agentCaller()
    const skill = await makeSkill({ server })
    const asked = await call(`/skills/${skill.id}/replace-bundle`, 'POST', { bundle: newBundle('Rejected') }, token)
    const { root } = server.database
    const staged = () => root('skill_bundles').where({ change_id: asked.body.approvalId }).first()
    const { id, blob_id: blob } = (await staged()) as { id: string; blob_id: string }
    const bundle = { bundleId: id, bundleHash: skill.bundleHash, files: [] }
    expect(outcomeOf(await call(`/skills/${skill.id}/replace-bundle`, 'POST', { bundle }))).toBe(
      '400 invalid_skill_bundle',
    )
    await server.plane.sweeper.runAll()
    expect(await staged()).toBeDefined()
    await server.ok(`/approvals/${asked.body.approvalId}/reject`, {
      body: {},
      token: member.token,
      headers: { 'idempotency-key': 'r' },
    })
    await server.plane.sweeper.runAll()
    expect(await staged()).toBeUndefined()
    await server.plane.sweeper.runAll()
    expect(await root('blobs').where({ id: blob }).first()).toBeUndefined()
  })
})
