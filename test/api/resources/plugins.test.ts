import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Plugin } from '../../../shared/api/plugin-fields.ts'
import { startGitServer, type GitServer } from '../../kit/git-server.ts'
import { startWithPeople } from '../../kit/people.ts'
import { specOf } from '../../kit/rows.ts'
import { outcomeOf, type Person, type Reply, type TestServer } from '../../kit/server.ts'
import { makeServer } from '../facts/kit/mcp-servers.ts'
import { bundleOf, makePlugin, newPlugin, newPluginName, pluginFiles, tracker, treeOf } from '../facts/kit/plugins.ts'
import { makeSkill, newSlug, skillMd } from '../facts/kit/skills.ts'
import { agentCalls } from './agent-calls-kit.ts'

// Plugins of a workspace: what they bring, who decides about them, and what a run has of them.

let server: TestServer, admin: Person, member: Person, git: GitServer
beforeAll(async () => {
  git = await startGitServer()
  ;({ server, admin, member } = await startWithPeople({ settings: { SVC_ALLOW_HOSTS: '127.0.0.1' } }))
})
afterEach(() => void (git.answer = null))
afterAll(async () => {
  await server.stop()
  await git.close()
})

const { agentCaller } = agentCalls(() => ({ server, member }))
const ask = (path: string, method: string, body?: unknown, { token }: { token: string } = admin): Promise<Reply> =>
  server.call(path, {
    method,
    token,
    headers: { 'idempotency-key': crypto.randomUUID() },
    ...(body !== undefined && { body }),
  })
const install = (body: unknown, by: { token: string } = admin) => ask('/plugins', 'POST', body, by)
const update = (id: string, body: unknown, by: { token: string } = admin) =>
  ask(`/plugins/${id}/update`, 'POST', body, by)
const answerApproval = (approvalId: string, verb: 'approve' | 'reject', by: Person = admin) =>
  ask(`/approvals/${approvalId}/${verb}`, 'POST', {}, by)
const slugsOf = ({ skills }: Plugin) => skills.map(({ slug }) => slug)
const serversOf = ({ mcpServers }: Plugin) => mcpServers.map(({ name }) => name)

/** A repository with one plugin of a name of its own. */
function aRepo(of: Parameters<typeof pluginFiles>[0] = {}) {
  const name = of.name ?? newPluginName()
  const url = `${git.url}/${name}.git`
  const repo = git.repo(`${name}.git`)
  const commit = (more: Parameters<typeof pluginFiles>[0] = of) =>
    repo.commit(treeOf(pluginFiles({ ...more, name: more.name ?? name })))
  return { name, url, sha: commit(of), commit }
}

/** What a run of the agent is told that begins now. */
async function told(agentId: string, { token }: Person = admin) {
  const { runPublicId } = await server.ok(`/agents/${agentId}/runs`, {
    body: {},
    token,
    headers: { 'idempotency-key': crypto.randomUUID() },
  })
  const { skills, mcpServers } = await specOf(server, runPublicId)
  return {
    slugs: ((skills ?? []) as { slug: string }[]).map(({ slug }) => slug),
    servers: mcpServers as Record<string, unknown>,
  }
}
const claude = (body: object = {}) =>
  server.createAgent({ harness: 'claude', command: null, ...body }, admin.token) as Promise<{ id: string }>
const removeAll = async () => {
  for (const { id } of (await server.ok('/plugins?limit=100')).data) await ask(`/plugins/${id}`, 'DELETE')
}

describe('a plugin', () => {
  afterEach(removeAll)

  test('out of a repository brings its skills and its MCP servers, to runs while it is on', async () => {
    const [one, two] = [newSlug(), newSlug()]
    const skills = { [one]: skillMd(), [two]: 'Do it.' }
    const { name, url, sha } = aRepo({ skills, servers: { tracker, docs: { command: 'docs-mcp', args: ['--all'] } } })
    const { status, body } = await install({ url })
    expect(status).toBe(201)
    expect(body).toEqual({
      object: 'plugin',
      id: expect.stringMatching(/^plug_/),
      name,
      version: '1.0.0',
      description: 'Tools.',
      enabled: true,
      format: 'agent_plugins',
      source: { url, ref: null, subdir: null, resolvedSha: sha },
      pluginHash: expect.stringMatching(/^[0-9a-f]{64}$/),
      installedBy: { type: 'user', id: admin.userId },
      installedAt: expect.any(String),
      updatedAt: expect.any(String),
      skills: [one, two].toSorted().map((slug) => expect.objectContaining({ slug, version: 1 })),
      mcpServers: [
        {
          id: expect.stringMatching(/^mcp_/),
          name: `plugin-${name}-docs`,
          nameInPlugin: 'docs',
          transport: 'stdio',
          url: null,
          command: 'docs-mcp',
          args: ['--all'],
        },
        expect.objectContaining({ name: `plugin-${name}-tracker`, transport: 'http', url: tracker.url, command: null }),
      ],
      notUsed: [],
    })
    expect(await server.ok(`/plugins/${name}`, { token: member.token })).toEqual(body)
    const { skills: _, mcpServers: __, notUsed: ___, ...summary } = body
    expect((await server.ok(`/plugins?q=${name}`)).data).toEqual([summary])
    expect(await server.ok(`/skills/${body.skills[0].id}`)).toMatchObject({
      sourceType: 'plugin',
      namespace: name,
      enabledByDefault: true,
      plugin: { id: body.id, name, enabled: true },
    })
    const listed = (await server.ok('/mcp-servers?limit=100')).data
    expect(listed.filter((row: { pluginId: string | null }) => row.pluginId === body.id)).toHaveLength(2)

    const agent = await claude()
    const has = { slugs: expect.arrayContaining([one, two]), servers: expect.objectContaining({}) }
    const on = await told(agent.id)
    expect(on).toEqual(has)
    expect(on.servers).toMatchObject({
      [`plugin-${name}-tracker`]: { type: 'http', url: tracker.url },
      [`plugin-${name}-docs`]: { type: 'stdio', command: 'docs-mcp', args: ['--all'] },
    })
    expect((await ask(`/plugins/${name}/disable`, 'POST')).body).toEqual({
      ...body,
      enabled: false,
      updatedAt: expect.any(String),
    })
    expect((await server.ok('/plugins?enabled=false')).data).toHaveLength(1)
    const off = await told(agent.id)
    expect(off.slugs.filter((slug) => slug === one || slug === two)).toEqual([])
    expect(Object.keys(off.servers).filter((server) => server.startsWith('plugin-'))).toEqual([])
    expect((await ask(`/plugins/${body.id}/enable`, 'POST')).body.enabled).toBe(true)
    expect(await told(agent.id)).toEqual(on)
  })

  test('may begin switched off, and comes from a folder of a repository at a ref', async () => {
    const slug = newSlug()
    const name = newPluginName()
    const repo = git.repo(`${name}.git`)
    repo.commit({ 'README.md': 'x' })
    const sha = repo.commit({ plugins: { [name]: treeOf(pluginFiles({ name, skills: { [slug]: 'x' } })) } }, 'next')
    const url = `${git.url}/${name}.git`
    expect(outcomeOf(await install({ url }))).toBe('400 invalid_plugin')
    expect(outcomeOf(await install({ url, ref: 'next', subdir: 'none' }))).toBe('400 invalid_plugin_source')
    const { body } = await install({ url, ref: 'next', subdir: `plugins/${name}/`, enabled: false })
    expect(body).toMatchObject({
      enabled: false,
      source: { url, ref: 'next', subdir: `plugins/${name}`, resolvedSha: sha },
    })
    expect((await told((await claude()).id)).slugs).not.toContain(slug)
  })

  test('that is brought up to date keeps what agents have otherwise, and the names of its servers', async () => {
    const [stays, changes, goes, comes] = [newSlug(), newSlug(), newSlug(), newSlug()]
    const { name, url, sha, commit } = aRepo({
      skills: { [stays]: 'same', [changes]: 'one', [goes]: 'x' },
      servers: { tracker, old: { command: 'old-mcp' } },
    })
    const first: Plugin = (await install({ url })).body
    const agent = await claude()
    for (const slug of [stays, changes, goes])
      await ask(`/skills/${slug}/agents/${agent.id}`, 'PUT', { enabled: slug === goes })
    await ask(`/skills/${stays}`, 'PATCH', { enabledByDefault: false })
    expect((await update(name, {})).body).toEqual(first)
    await ask(`/plugins/${name}/disable`, 'POST')

    const next = commit({
      skills: { [stays]: 'same', [changes]: 'two', [comes]: 'new' },
      servers: { tracker: { ...tracker, url: 'https://mcp.example.com/v2' }, new: { command: 'new-mcp' } },
    })
    const second: Plugin = (await update(name, { ref: 'main' })).body
    expect(second).toMatchObject({ id: first.id, enabled: false, source: { ref: 'main', resolvedSha: next } })
    expect(second.pluginHash).not.toBe(first.pluginHash)
    expect(slugsOf(second)).toEqual([stays, changes, comes].toSorted())
    const idOf = (plugin: Plugin, slug: string) => plugin.skills.find((skill) => skill.slug === slug)
    expect(idOf(second, stays)).toEqual(idOf(first, stays))
    expect(idOf(second, changes)).toEqual({ ...idOf(first, changes), version: 2 })
    expect((await server.ok(`/skills/${changes}/files/content?path=SKILL.md`)).content).toBe('two')
    expect((await server.ok(`/skills/${stays}`)).enabledByDefault).toBe(false)
    const overrides = (await server.ok(`/skills/agents/${agent.id}?limit=100`)).data as Record<string, unknown>[]
    const enabledOf = (slug: string) => overrides.find((row) => row['slug'] === slug)?.['enabled']
    expect([stays, changes, comes, goes].map(enabledOf)).toEqual([false, false, null, undefined])
    expect(outcomeOf(await ask(`/skills/${goes}`, 'GET'))).toBe('404 skill_not_found')
    expect(serversOf(second)).toEqual([`plugin-${name}-new`, `plugin-${name}-tracker`])
    expect(second.mcpServers[1]).toMatchObject({ id: first.mcpServers[1]!.id, url: 'https://mcp.example.com/v2' })

    // What cannot be taken changes nothing; an earlier commit does.
    commit({ skills: { 'No Slug': 'x' } })
    expect(outcomeOf(await update(name, {}))).toBe('400 invalid_plugin')
    commit({ name: 'another', skills: { [comes]: 'x' } })
    expect(outcomeOf(await update(name, {}))).toBe('400 invalid_plugin')
    expect(await server.ok(`/plugins/${name}`)).toEqual(second)
    expect(slugsOf((await update(name, { ref: sha })).body)).toEqual([stays, changes, goes].toSorted())
  })

  test('whose files were sent is given others by sending them', async () => {
    const [one, two] = [newSlug(), newSlug()]
    const { id, name, source, pluginHash } = await makePlugin({ server }, { skills: { [one]: 'x' } })
    expect(source).toEqual({ url: null, ref: null, subdir: null, resolvedSha: null })
    for (const body of [{}, { ref: 'main' }, { ...newPlugin({ name }), ref: 'main' }])
      expect(outcomeOf(await update(id, body))).toBe('400 invalid_plugin_source')
    for (const body of [{}, { ...newPlugin(), ref: 'main' }, { ...newPlugin(), url: 'acme/x' }])
      expect(outcomeOf(await install(body))).toBe('400 invalid_plugin_source')
    const changed = (await update(id, newPlugin({ name, skills: { [two]: 'x' } }))).body
    expect(slugsOf(changed)).toEqual([two])
    expect(changed.pluginHash).not.toBe(pluginHash)
    const again = (await update(id, newPlugin({ name, skills: { [one]: 'x' } }))).body
    expect(again.pluginHash).toBe(pluginHash)
  })

  test('that is removed leaves nothing, and its name is free', async () => {
    const [slug, own] = [newSlug(), newSlug()]
    const name = newPluginName()
    const plugin = await makePlugin({ server }, { name, skills: { [slug]: 'x' }, servers: { tracker } })
    await makeSkill({ server }, { slug: own })
    const ofAll = await makeServer({ server })
    const agent = await claude()
    await ask(`/skills/${slug}/agents/${agent.id}`, 'PUT', { enabled: true })
    expect((await ask(`/plugins/${name}`, 'DELETE')).status).toBe(204)
    expect(outcomeOf(await ask(`/plugins/${plugin.id}`, 'GET'))).toBe('404 plugin_not_found')
    expect(outcomeOf(await ask(`/skills/${slug}`, 'GET'))).toBe('404 skill_not_found')
    expect(outcomeOf(await ask(`/mcp-servers/${plugin.mcpServers[0].id}`, 'GET'))).toBe('404 mcp_server_not_found')
    expect((await ask(`/mcp-servers/${ofAll.id}`, 'DELETE')).status).toBe(204)
    expect((await ask(`/skills/${own}`, 'GET')).status).toBe(200)
    const { root } = server.database
    expect(await root('skill_overrides').where({ agent_id: agent.id })).toEqual([])
    expect(await root('skill_bundles').where({ id: plugin.skills[0].id }).whereNull('retired_at')).toEqual([])
    expect((await makePlugin({ server }, { name })).name).toBe(name)
  })
})

describe('names', () => {
  afterEach(removeAll)

  test('of servers collide with none that there is, and none takes the place of a plugin’s', async () => {
    const { workspaceId } = admin
    await makeServer({ server }, { name: 'plugin-a-b-c', url: 'https://workspace.example', headers: undefined })
    const setting = { Plugin_D_Tracker: { url: 'https://setting.example' } }
    await ask(`/workspaces/${workspaceId}`, 'PATCH', { mcpServers: setting })
    const first = await makePlugin({ server }, { name: 'a-b', servers: { c: tracker, C: tracker } })
    expect(serversOf(first)).toEqual(['plugin-a-b-C-3', 'plugin-a-b-c-2'].toSorted())
    expect(serversOf(await makePlugin({ server }, { name: 'a', servers: { 'b-c': tracker } }))).toEqual([
      'plugin-a-b-c-4',
    ])
    expect(serversOf(await makePlugin({ server }, { name: 'd', servers: { tracker } }))).toEqual(['plugin-d-tracker-2'])
    for (const name of ['PLUGIN-A-B-C-2', 'plugin_d_tracker_2'])
      expect(outcomeOf(await ask('/mcp-servers', 'POST', { name, url: 'https://x.example' }))).toBe(
        '409 duplicate_resource',
      )
    // Of one agent alone is a matter of that agent, and its own wins.
    const agent = await claude()
    const own = { name: 'plugin-a-b-c-2', url: 'https://own.example', agentId: agent.id }
    expect((await ask('/mcp-servers', 'POST', own)).status).toBe(201)
    const { servers } = await told(agent.id)
    expect(servers).toMatchObject({
      'plugin-a-b-c': { url: 'https://workspace.example' },
      'plugin-a-b-c-2': { url: 'https://own.example' },
      'plugin-a-b-C-3': { url: tracker.url },
      'plugin-a-b-c-4': { url: tracker.url },
      Plugin_D_Tracker: { url: 'https://setting.example' },
      'plugin-d-tracker-2': { url: tracker.url },
    })
    await ask(`/workspaces/${workspaceId}`, 'PATCH', { mcpServers: null })
  })

  test('of skills may be those of others: a skill of no plugin comes first', async () => {
    const slug = newSlug()
    const text = 'Of the plugin.'
    await makePlugin({ server }, { skills: { [slug]: text } })
    await makePlugin({ server }, { skills: { [slug]: text } })
    expect(outcomeOf(await ask(`/skills/${slug}`, 'GET'))).toBe('409 ambiguous_skill_ref')
    const own = await makeSkill({ server }, { slug })
    const { runPublicId } = await server.ok(`/agents/${(await claude()).id}/runs`, { body: {}, token: admin.token })
    const { skills } = await specOf(server, runPublicId)
    expect(skills.filter((skill: { slug: string }) => skill.slug === slug)).toMatchObject([
      { bundleHash: own.bundleHash },
    ])
  })

  test('of two installs at once one is there', async () => {
    const name = newPluginName()
    const replies = await Promise.all([1, 2, 3].map(() => install(newPlugin({ name, servers: { tracker } }))))
    expect(replies.map(outcomeOf).toSorted()).toEqual(['201', '409 duplicate_plugin_name', '409 duplicate_plugin_name'])
    expect((await server.ok(`/plugins?q=${name}`)).data).toHaveLength(1)
    const kept = await server.database.root('skills').whereNotNull('plugin_id')
    expect(kept).toHaveLength(1)
  })

  test('of updates and removals at once one order is left', async () => {
    const [one, two] = [newSlug(), newSlug()]
    const { id, name } = await makePlugin({ server }, { servers: { tracker } })
    const of = (slug: string) => newPlugin({ name, skills: { [slug]: 'x' }, servers: { [slug]: tracker } })
    const replies = await Promise.all([update(id, of(one)), update(id, of(two)), ask(`/plugins/${id}/disable`, 'POST')])
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 200])
    const left: Plugin = await server.ok(`/plugins/${id}`)
    expect([left.enabled, left.skills.length, left.mcpServers.length]).toEqual([false, 1, 1])
    expect(left.mcpServers[0]!.nameInPlugin).toBe(slugsOf(left)[0])
    const ends = await Promise.all([update(id, of(one)), ask(`/plugins/${id}`, 'DELETE')])
    expect(ends[1].status).toBe(204)
    expect(await server.database.root('skills').whereNotNull('plugin_id')).toEqual([])
    expect(await server.database.root('mcp_servers').whereNotNull('plugin_id')).toEqual([])
  })
})

describe('what a plugin brought', () => {
  afterEach(removeAll)

  test('is changed with the plugin alone, but for the connection that a server uses', async () => {
    const plugin = await makePlugin({ server }, { servers: { tracker } })
    const { id } = plugin.mcpServers[0]
    for (const body of [{ url: 'https://evil.example' }, { name: 'x' }, { headers: {}, connectionId: null }])
      expect(outcomeOf(await ask(`/mcp-servers/${id}`, 'PATCH', body))).toBe('409 mcp_server_of_plugin')
    expect((await ask(`/mcp-servers/${id}`, 'PATCH', { connectionId: null })).status).toBe(200)
    const skill = plugin.skills[0].id
    for (const [path, method, body] of [
      ['', 'PATCH', { name: 'x' }],
      ['', 'DELETE'],
      ['/replace-bundle', 'POST', { bundle: { files: [{ path: 'SKILL.md', content: 'x' }] } }],
    ] as const)
      expect(outcomeOf(await ask(`/skills/${skill}${path}`, method, body))).toBe('409 skill_replace_forbidden')
  })

  test('keeps the connection that people chose, while its address is the same', async () => {
    const servers = { wiki: { type: 'http', url: 'https://mcp.deepwiki.com/mcp' } }
    const { id, name, mcpServers } = await makePlugin({ server }, { servers })
    const made = await ask('/connections', 'POST', { integrationId: 'deepwiki', ownerType: 'company' })
    const connectionId = made.body.connection.id as string
    const path = `/mcp-servers/${mcpServers[0].id}`
    expect((await ask(path, 'PATCH', { connectionId })).body.connectionId).toBe(connectionId)
    const ours = { ...servers.wiki, connectionId: 'conn_0000000000000000' }
    await update(id, newPlugin({ name, servers: { wiki: ours } }))
    expect((await server.ok(path)).connectionId).toBe(connectionId)
    await update(id, newPlugin({ name, servers: { wiki: { ...servers.wiki, url: 'https://evil.example/mcp' } } }))
    expect(await server.ok(path)).toMatchObject({ url: 'https://evil.example/mcp', connectionId: null })
  })
})

describe('who decides', () => {
  afterEach(removeAll)

  test('are admins: a member reads, and changes nothing', async () => {
    const { id, name } = await makePlugin({ server })
    for (const [path, method, body] of [
      ['/plugins', 'POST', newPlugin()],
      [`/plugins/${id}/update`, 'POST', newPlugin({ name })],
      [`/plugins/${id}/enable`, 'POST'],
      [`/plugins/${id}/disable`, 'POST'],
      [`/plugins/${id}`, 'DELETE'],
    ] as const)
      expect([path, outcomeOf(await ask(path, method, body, member))]).toEqual([path, '403 http_exception'])
    git.requests.length = 0
    expect(outcomeOf(await install({ url: `${git.url}/x.git` }, member))).toBe('403 http_exception')
    expect(git.requests).toEqual([])
    const stranger = await server.addPerson('owner', newSlug())
    for (const method of ['GET', 'DELETE'])
      expect(outcomeOf(await ask(`/plugins/${id}`, method, undefined, stranger))).toBe('404 plugin_not_found')
    expect((await ask(`/plugins/${id}`, 'GET', undefined, member)).body.enabled).toBe(true)
  })

  test('an admin approves what an agent asks for, and gets exactly that, whatever the repository is by then', async () => {
    const { token } = await agentCaller({}, { owner: admin })
    const slug = newSlug()
    const command = { command: 'docs-mcp', args: ['--asked'] }
    const own = { command: 'node', args: ['${PLUGIN_ROOT}/server.js'] }
    const { name, url, sha, commit } = aRepo({ skills: { [slug]: 'asked' }, servers: { docs: command, own } })
    const asked = await install({ url }, { token })
    expect([asked.status, asked.body.object]).toEqual([202, 'platform_change'])
    const approval = JSON.stringify(await server.ok(`/approvals/${asked.body.approvalId}`, { token: admin.token }))
    for (const text of [
      sha,
      slug,
      '"SKILL.md"',
      '"pluginHash"',
      '"bundleHash"',
      '"sha256"',
      'docs-mcp',
      '--asked',
      url,
    ])
      expect(approval).toContain(text)
    const path = `/approvals/${asked.body.approvalId}?include[]=files`
    const { files } = await server.ok(path, { token: admin.token })
    const texts = (files as { path: string; content: string; truncated: boolean }[]).map((file) => [
      file.path,
      file.content,
      file.truncated,
    ])
    // Skills by their names, then the whole plugin, whose programs the server starts.
    expect(texts[0]).toEqual([`${slug}/SKILL.md`, 'asked', false])
    expect(texts.slice(1).every(([file]) => String(file).startsWith(`${name}/`))).toBe(true)
    expect(texts).toContainEqual([`${name}/skills/${slug}/SKILL.md`, 'asked', false])
    expect(JSON.stringify(texts)).toContain('server.js')
    expect((await server.ok(path, { token: member.token })).files).toBeNull()
    commit({ skills: { [slug]: 'moved' }, servers: { docs: { command: 'evil-mcp' } } })
    git.requests.length = 0
    git.answer = (_, response) => Boolean(response.writeHead(500).end())
    expect((await answerApproval(asked.body.approvalId, 'approve')).status).toBe(200)
    expect(git.requests).toEqual([])
    const plugin: Plugin = await server.ok(`/plugins/${name}`)
    expect(plugin).toMatchObject({
      source: { url, resolvedSha: sha },
      mcpServers: [command, { args: [expect.stringMatching(/^\$\{SVC_PLUGIN_[0-9a-f]{64}\}\/server\.js$/)] }],
      installedBy: { id: admin.userId },
    })
    expect((await server.ok(`/skills/${slug}/files/content?path=SKILL.md`)).content).toBe('asked')

    const hash = /[0-9a-f]{64}/.exec(plugin.mcpServers[1]!.args[0]!)![0]
    const bundle = server.database.root('skill_bundles').where({ bundle_hash: hash, retired_at: null })
    expect(await bundle.select('change_id')).toEqual([{ change_id: null }])

    git.answer = null
    const next = await update(name, {}, { token })
    expect(next.status).toBe(202)
    commit({ skills: { [slug]: 'moved again' } })
    await answerApproval(next.body.approvalId, 'approve')
    expect((await server.ok(`/plugins/${name}`)).mcpServers).toMatchObject([{ command: 'evil-mcp' }])
    expect((await server.ok(`/skills/${slug}/files/content?path=SKILL.md`)).content).toBe('moved')
  })

  test('an approval grants no more than its approver could do', async () => {
    const { token } = await agentCaller()
    const { id, name } = await makePlugin({ server })
    const wanted = newPluginName()
    const asks = [
      await install(newPlugin({ name: wanted }), { token }),
      await update(id, newPlugin({ name }), { token }),
      await ask(`/plugins/${id}/disable`, 'POST', undefined, { token }),
      await ask(`/plugins/${id}`, 'DELETE', undefined, { token }),
    ]
    expect(asks.map(({ status }) => status)).toEqual([202, 202, 202, 202])
    const before = await server.ok(`/plugins/${id}`)
    for (const { body } of asks) await answerApproval(body.approvalId, 'approve', member)
    expect(await server.ok(`/plugins/${id}`)).toEqual(before)
    expect(outcomeOf(await ask(`/plugins/${wanted}`, 'GET'))).toBe('404 plugin_not_found')
    const again = await ask(`/plugins/${id}/disable`, 'POST', undefined, { token })
    const to = { assignedTo: { type: 'user', id: admin.userId }, reason: 'Admins decide.' }
    expect((await ask(`/approvals/${again.body.approvalId}/assign`, 'POST', to)).status).toBe(200)
    await answerApproval(again.body.approvalId, 'approve')
    expect((await server.ok(`/plugins/${id}`)).enabled).toBe(false)
    await server.plane.sweeper.runAll()
    const staged = await server.database.root('skill_bundles').whereNotNull('change_id')
    expect(staged).toEqual([])
  })

  test('what was asked for is refused when its name is taken by then, and nothing of it stays', async () => {
    const { token } = await agentCaller({}, { owner: admin })
    const name = newPluginName()
    const asked = await install(newPlugin({ name, skills: { asked: 'x' } }), { token })
    const first = await makePlugin({ server }, { name })
    await answerApproval(asked.body.approvalId, 'approve')
    const approval = await server.ok(`/approvals/${asked.body.approvalId}`, { token: admin.token })
    expect(JSON.stringify(approval)).toContain('duplicate_plugin_name')
    expect(await server.ok(`/plugins/${name}`)).toEqual(first)
  })
})

test('a workspace has so many plugins', async () => {
  const files = bundleOf(pluginFiles())
  const { root } = server.database
  const row = { workspace_id: admin.workspaceId, enabled: 0 }
  await root('plugins').insert(Array.from({ length: 50 }, (_, at) => ({ ...row, id: `plug_${at}`, name: `p${at}` })))
  expect(outcomeOf(await install({ bundle: files }))).toBe('400 validation_error')
  await root('plugins').where({ id: 'plug_1' }).delete()
  expect((await install({ bundle: files })).status).toBe(201)
})
