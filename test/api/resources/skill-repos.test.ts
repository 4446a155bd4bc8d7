import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest'
import { startGitServer, type GitServer, type Tree } from '../../kit/git-server.ts'
import { startWithPeople } from '../../kit/people.ts'
import { outcomeOf, type Person, type TestServer } from '../../kit/server.ts'
import { makePluginSkill } from '../facts/kit/plugins.ts'
import { makeSkill, newSlug, skillMd } from '../facts/kit/skills.ts'
import { agentCalls } from './agent-calls-kit.ts'

let server: TestServer, member: Person, git: GitServer
beforeAll(async () => {
  git = await startGitServer()
  ;({ server, member } = await startWithPeople({ settings: { SVC_ALLOW_HOSTS: '127.0.0.1' } }))
})
afterEach(() => void (git.answer = null))
afterAll(async () => {
  await server.stop()
  await git.close()
})

const { agentCaller } = agentCalls(() => ({ server, member }))
interface Asked {
  url: string
  ref?: string
  subdir?: string
  skills?: string[]
}
const install = (body: Asked, token = member.token) =>
  server.call(`/companies/${member.workspaceId}/skills/install-from-repo`, { method: 'POST', body, token })
const answerApproval = (approvalId: string, verb: 'approve' | 'reject') =>
  server.call(`/approvals/${approvalId}/${verb}`, {
    body: {},
    token: member.token,
    headers: { 'idempotency-key': crypto.randomUUID() },
  })
const textOf = async (slug: string, path = 'SKILL.md') =>
  (await server.ok(`/skills/${slug}/files/content?path=${path}`)).content as string

const md = (text: string) => `---\ndescription: Does ${text}.\n---\n${text}`
let count = 0
function newRepo(tree: Tree) {
  const name = `repo-${++count}.git`
  const repo = git.repo(name)
  return { repo, url: `${git.url}/${name}`, sha: repo.commit(tree) }
}
/** A repository with one skill of a slug of its own. */
function oneSkill(text = 'one') {
  const slug = newSlug()
  const treeOf = (content: string): Tree => ({ skills: { [slug]: { 'SKILL.md': md(content) } } })
  const made = newRepo(treeOf(text))
  return { slug, ...made, change: (content: string) => made.repo.commit(treeOf(content)) }
}
const shown = (row: { slug: string }) => row.slug
const blobCount = async () =>
  Number(((await server.database.root('blobs').count({ n: '*' }).first()) as { n: unknown }).n)

describe('a repository', () => {
  test('gives the skills of its root and of three folders', async () => {
    const [a, b, c] = [newSlug(), newSlug(), newSlug()]
    const root = newSlug()
    const { url, sha } = newRepo({
      'SKILL.md': `---\nname: ${root}\n---\nRoot`,
      'notes.md': 'x',
      skills: {
        [a]: { 'SKILL.md': md('a'), scripts: { 'run.sh': { mode: '100755', content: '#!/bin/sh\n' } } },
        other: { deeper: { 'SKILL.md': 'too deep' } },
      },
      '.agents': { skills: { [b]: { 'SKILL.md': md('b') } } },
      '.claude': { skills: { [c]: { 'SKILL.md': md('c') } } },
      elsewhere: { x: { 'SKILL.md': 'not searched' } },
    })
    const { status, body } = await install({ url })
    expect([status, body.skipped, body.resolvedSha]).toEqual([201, [], sha])
    expect(body.installed.map(shown).toSorted()).toEqual([a, b, c, root].toSorted())
    expect(body.installed[0]).toMatchObject({
      object: 'skill',
      sourceType: 'imported',
      enabledByDefault: true,
      version: 1,
    })
    const skill = await server.ok(`/skills/${a}`)
    expect(skill).toMatchObject({ name: a, description: 'Does a.', source: { type: 'imported' } })
    expect(skill.files).toMatchObject([{ path: 'SKILL.md' }, { path: 'scripts/run.sh', executable: true }])
    const ofRoot = (await server.ok(`/skills/${root}`)).files.map(({ path }: { path: string }) => path)
    expect(ofRoot).toEqual(['SKILL.md', 'elsewhere/x/SKILL.md', 'notes.md'])
    const listed = (await server.ok('/skills?sourceType=repo&limit=100')).data
    expect(listed.map(shown)).toEqual(expect.arrayContaining([a, b, c, root]))
  })

  test('is read at a ref and below a folder, and gives those that are named', async () => {
    const [a, b] = [newSlug(), newSlug()]
    const { url, repo } = newRepo({ 'README.md': 'x' })
    const sha = repo.commit({ tools: { [a]: { 'SKILL.md': md('a') }, [b]: { 'SKILL.md': md('b') } } }, 'next')
    expect(outcomeOf(await install({ url }))).toBe('404 no_skills_found')
    expect(outcomeOf(await install({ url, ref: 'next' }))).toBe('404 no_skills_found')
    expect(outcomeOf(await install({ url, ref: 'next', subdir: 'none' }))).toBe('404 no_skills_found')
    expect(outcomeOf(await install({ url, ref: 'next', subdir: 'tools', skills: ['none'] }))).toBe(
      '404 no_skills_found',
    )
    const { body } = await install({ url, ref: 'next', subdir: 'tools/', skills: [a, 'none'] })
    expect([body.installed.map(shown), body.resolvedSha]).toEqual([[a], sha])
    expect(body.skipped).toEqual([{ slug: 'none', path: null, reason: 'not_found', message: expect.any(String) }])
    const alone = await install({ url, ref: sha, subdir: `tools/${b}` })
    expect(alone.body.installed.map(shown)).toEqual([b])
  })

  test('brings what it brought before up to date, and leaves what is from elsewhere', async () => {
    const { slug, url, change } = oneSkill()
    const first = (await install({ url })).body.installed[0]
    await server.call(`/skills/${slug}`, {
      method: 'PATCH',
      body: { name: 'Renamed', enabledByDefault: false },
      token: member.token,
    })
    expect((await install({ url: url.replace(/\.git$/, '') })).body.installed[0]).toMatchObject({
      id: first.id,
      version: 1,
    })
    change('two')
    const second = (await install({ url })).body.installed[0]
    expect(second).toMatchObject({ id: first.id, version: 2, name: 'Renamed', enabledByDefault: false })
    expect(await textOf(slug)).toBe(md('two'))
    const twin = newRepo({ skills: { [slug]: { 'SKILL.md': md('foreign') } } })
    const before = await blobCount()
    const refused = await install({ url: twin.url })
    expect([refused.status, refused.body.installed, refused.body.skipped]).toEqual([
      201,
      [],
      [{ slug, path: `skills/${slug}`, reason: 'slug_taken', message: expect.any(String) }],
    ])
    const { slug: own } = await makeSkill({ server })
    const other = newRepo({ skills: { [own]: { 'SKILL.md': md('foreign') } } })
    expect((await install({ url: other.url })).body.skipped[0]).toMatchObject({ slug: own, reason: 'slug_taken' })
    expect(await blobCount()).toBe(before + 1)
    expect(await textOf(slug)).toBe(md('two'))
    // A skill of a plugin has its slug for itself.
    const plugin = await makePluginSkill({ server })
    const beside = newRepo({ skills: { [plugin.slug]: { 'SKILL.md': md('beside') } } })
    expect((await install({ url: beside.url })).body.installed.map(shown)).toEqual([plugin.slug])
  })

  test('that two people install at once is installed once, whoever is first', async () => {
    const { slug, url } = oneSkill()
    const twin = newRepo({ skills: { [slug]: { 'SKILL.md': md('foreign') } } })
    const replies = await Promise.all([install({ url }), install({ url: twin.url }), install({ url })])
    expect(replies.map(({ status }) => status)).toEqual([201, 201, 201])
    const rows = (await server.ok(`/skills?q=${slug}`)).data
    expect(rows).toHaveLength(1)
    const fromFirst = (await textOf(slug)) === md('one')
    expect(replies.map(({ body }) => body.installed.length)).toEqual(fromFirst ? [1, 0, 1] : [0, 1, 0])
  })

  test('is asked once for one key', async () => {
    const { slug, url, change } = oneSkill()
    const ask = () =>
      server.call(`/workspaces/${member.workspaceId}/skills/install-from-repo`, {
        body: { url },
        token: member.token,
        headers: { 'idempotency-key': `install-${slug}` },
      })
    const first = await ask()
    change('two')
    expect((await ask()).body).toEqual(first.body)
    expect(await textOf(slug)).toBe(md('one'))
  })
})

describe('what is in a repository', () => {
  test('is skipped with its reason where it is no bundle', async () => {
    const slug = newSlug()
    const bad: Record<string, Tree> = {
      'bad-link': { 'SKILL.md': md('x'), link: { mode: '120000', content: '../../../etc/passwd' } },
      'bad-submodule': { 'SKILL.md': md('x'), sub: { mode: '160000', oid: 'a'.repeat(40) } },
      'bad-case': { 'SKILL.md': md('x'), 'a.md': 'x', 'A.md': 'x' },
      'bad-form': { 'SKILL.md': md('x'), '\u00fc': 'x', 'u\u0308': 'x' },
      'bad-path': { 'SKILL.md': md('x'), '..': { 'out.md': 'x' } },
      'bad-git': { 'SKILL.md': md('x'), '.git': { config: 'x' } },
      'bad-lfs': {
        'SKILL.md': md('x'),
        'model.bin': 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n',
      },
      'bad-many': {
        'SKILL.md': md('x'),
        ...Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`f${at}`, 'x'])),
      },
      'bad-matter': { 'SKILL.md': '---\nname: &a x\n---\n' },
      'bad-size': { 'SKILL.md': md('x'), bomb: Buffer.alloc(25 * 1024 * 1024) },
    }
    const { url } = newRepo({
      skills: {
        ...bad,
        [slug]: { 'SKILL.md': md('good'), '.gitattributes': '* filter=lfs' },
        'Bad Slug': { 'SKILL.md': 'x' },
      },
    })
    const before = await blobCount()
    const { body } = await install({ url })
    expect(body.installed.map(shown)).toEqual([slug])
    const reasons = Object.fromEntries(
      body.skipped.map((one: { slug: string; reason: string }) => [one.slug, one.reason]),
    )
    expect(reasons).toEqual({
      ...Object.fromEntries(Object.keys(bad).map((name) => [name, 'invalid_bundle'])),
      'Bad Slug': 'invalid_slug',
    })
    expect(await blobCount()).toBe(before + 1)
  }, 60_000)

  test('that brings more skills than one install takes is said to be too much', async () => {
    const mark = newSlug()
    const many = Object.fromEntries(
      Array.from({ length: 55 }, (_, at) => [`${mark}-${at + 10}`, { 'SKILL.md': md('x') }]),
    )
    const { url } = newRepo({ skills: many })
    const { body } = await install({ url })
    expect([body.installed.length, body.skipped.map(({ reason }: { reason: string }) => reason)]).toEqual([
      50,
      Array(5).fill('too_much'),
    ])
  }, 60_000)
})

describe('an address', () => {
  test.each([
    'ext::sh -c "touch /tmp/x"',
    'ext::sh',
    'file:///etc',
    '/etc',
    '../x',
    'ssh://git@example.com/x.git',
    'git@example.com:x.git',
    'git://example.com/x.git',
    'http://example.com/x.git',
    'https://me:hush@example.com/x.git',
    'https://hush@example.com/x.git',
    'https://example.com/x.git\nhttps://other',
    'https://exam\tple.com/x.git',
    'https://example.com/',
    'https://example.com/x?y=1',
    'https://example.com/x#y',
    'https://127.0.0.2/x.git',
    'https://2130706434/x.git',
    'https://[::1]/x.git',
    'https://[::ffff:10.0.0.1]/x.git',
    'https://169.254.169.254/x.git',
    '--upload-pack=touch /tmp/x',
    '-x/y',
    'https:example.com',
    'https://a,b/x.git',
  ])('%s is refused', async (url) => {
    expect(outcomeOf(await install({ url }))).toBe('400 invalid_skill_source')
  })

  test.each([
    '--upload-pack=touch x',
    '-x',
    '+main',
    'a:b',
    'refs/heads/*',
    'a..b',
    'a b',
    'a\nb',
    '@',
    'a^{tree}',
    'HEAD~1',
    '/a',
    'a.lock',
    'a/',
  ])('with the ref %s is refused', async (ref) =>
    expect(outcomeOf(await install({ url: 'https://127.0.0.2/x.git', ref }))).toBe('400 invalid_skill_source'),
  )

  test.each(['..', '../x', 'a/../../x', '/etc', 'a//b', 'a\\b', 'C:/x'])(
    'with the folder %s is refused',
    async (subdir) => {
      expect(outcomeOf(await install({ url: 'https://127.0.0.2/x.git', subdir }))).toBe('400 invalid_skill_source')
    },
  )

  test('of another workspace is refused like any that is not there', async () => {
    const stranger = await server.addPerson('owner', newSlug())
    const { url } = oneSkill()
    for (const id of [stranger.workspaceId, '00000000-0000-4000-8000-000000000000']) {
      const path = `/companies/${id}/skills/install-from-repo`
      expect(outcomeOf(await server.call(path, { body: { url }, token: member.token }))).toBe('403 not_permitted')
    }
    expect(git.requests.some((one) => one.includes(new URL(url).pathname))).toBe(false)
  })
})

test('a caller that leaves ends the fetch, and its key is free', async () => {
  const { url, slug } = oneSkill()
  const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>()
  const { promise: left, resolve: leave } = Promise.withResolvers<void>()
  git.answer = (_, response) => {
    response.once('close', leave)
    arrive()
    return true
  }
  const asking = new AbortController()
  const send = (signal?: AbortSignal) =>
    fetch(`${server.nextUrl()}/api/v1/companies/${member.workspaceId}/skills/install-from-repo`, {
      method: 'POST',
      headers: { authorization: `Bearer ${member.token}`, 'content-type': 'application/json', 'idempotency-key': slug },
      body: JSON.stringify({ url }),
      ...(signal && { signal }),
    })
  const asked = send(asking.signal)
  await arrived
  asking.abort()
  await expect(asked).rejects.toThrow('aborted')
  await left
  git.answer = null
  await expect.poll(async () => (await send()).status).toBe(201)
  const folder = join(inject('databases').folder, 'fetches')
  await expect.poll(() => readdirSync(folder).filter((name) => name.startsWith(`${process.pid}-`))).toEqual([])
})

describe('an agent', () => {
  test('asks, and what was asked for is installed though the branch has moved and the server is gone', async () => {
    const { agent, token } = await agentCaller()
    const { slug, url, sha, change } = oneSkill('asked')
    const asked = await install({ url }, token)
    expect([asked.status, asked.body]).toEqual([
      202,
      { object: 'platform_change', approvalId: expect.any(String), status: 'pending' },
    ])
    const approval = JSON.stringify(await server.ok(`/approvals/${asked.body.approvalId}`, { token: member.token }))
    for (const told of [sha, slug, '"SKILL.md"', '"bundleHash"', '"sha256"', url.replace('.git', '')])
      expect(approval).toContain(told)
    change('moved')
    git.requests.length = 0
    git.answer = (_, response) => Boolean(response.writeHead(500).end())
    expect((await answerApproval(asked.body.approvalId, 'approve')).status).toBe(200)
    expect(git.requests).toEqual([])
    expect(await textOf(slug)).toBe(md('asked'))
    const skill = await server.ok(`/skills/${slug}`)
    expect(skill.enabledByDefault).toBe(false)
    const rows = (await server.ok(`/skills/agents/${agent.id}?limit=100`)).data
    expect(rows.find((row: { slug: string }) => row.slug === slug)).toMatchObject({
      enabled: true,
      effectiveEnabled: true,
    })
  })

  test('is told in the change what was skipped, also what somebody else took meanwhile', async () => {
    const { token } = await agentCaller()
    const { slug, url } = oneSkill('asked')
    const asked = await install({ url, skills: [slug, 'none'] }, token)
    await makeSkill({ server }, { slug })
    await answerApproval(asked.body.approvalId, 'approve')
    const approval = await server.ok(`/approvals/${asked.body.approvalId}`, { token: member.token })
    expect(JSON.stringify(approval)).toContain('slug_taken')
    expect(await textOf(slug)).toBe(skillMd())
    const { root } = server.database
    await server.plane.sweeper.runAll()
    expect(await root('skill_bundles').where({ change_id: asked.body.approvalId })).toEqual([])
  })

  test('asks nobody where nothing can be installed, and what is rejected is removed', async () => {
    const { token } = await agentCaller()
    const { url } = newRepo({ skills: { 'Bad Slug': { 'SKILL.md': 'x' } } })
    expect((await install({ url }, token)).body).toMatchObject({ installed: [], skipped: [{ reason: 'invalid_slug' }] })
    const { url: other, slug } = oneSkill()
    const asked = await install({ url: other }, token)
    await answerApproval(asked.body.approvalId, 'reject')
    await server.plane.sweeper.runAll()
    expect(await server.database.root('skill_bundles').where({ change_id: asked.body.approvalId })).toEqual([])
    expect(outcomeOf(await server.call(`/skills/${slug}`, { token: member.token }))).toBe('404 skill_not_found')
  })
})
