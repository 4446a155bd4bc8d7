import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { outcomeOf, TestServer, type Person } from '../../kit/server.ts'
import { makeTask } from '../facts/kit/tasks.ts'
import { patch } from '../facts/kit/recipe.ts'
import { makePage } from '../facts/kit/wiki.ts'

// Revisions of pages: who writes them, what is refused, and how an earlier one comes back.

let server: TestServer
let member: Person
beforeAll(async () => {
  server = await TestServer.start({ settings: { SVC_SECRETS_KEY: Buffer.alloc(32, 7).toString('base64') } })
  member = await server.addPerson('member')
})
afterAll(() => server.stop())

const page = (body: Record<string, unknown> = {}, token = member.token) => makePage({ server }, body, token)
const publish = (id: string, body: Record<string, unknown>, token = member.token) =>
  server.call(`/wiki/pages/${id}/revisions`, { body, token })
const history = async (id: string) => (await server.ok(`/wiki/pages/${id}/revisions`)).data

describe('publishing', () => {
  test('makes the next revision, with a new title where one is sent; the slug stays', async () => {
    const { id, slug, title, currentRevisionId: first } = await page({ body: 'First words.' })
    const reply = await publish(slug, { body: 'Second words.', title: 'Another title', baseRevisionId: first })
    expect(reply.status).toBe(201)
    const { page: shown, body, ...revision } = reply.body
    expect(revision).toEqual({
      object: 'wiki_revision',
      id: expect.stringMatching(/^wrev_\w{16}$/),
      pageId: id,
      title: 'Another title',
      baseRevisionId: first,
      sourceRef: null,
      author: { type: 'user', id: member.userId, name: 'member' },
      taskId: null,
      runId: null,
      tokenCount: 4,
      isPublished: true,
      failedChecks: [],
      createdAt: expect.any(String),
    })
    expect([body, shown.currentRevisionId, shown.slug]).toEqual(['Second words.', revision.id, slug])
    expect(await server.ok(`/wiki/pages/${id}`)).toMatchObject({ ...shown, body: 'Second words.' })
    const [newest, oldest] = await history(id)
    expect(newest).toEqual(revision)
    expect(oldest).toMatchObject({ id: first, title, baseRevisionId: null })
    expect(await server.ok(`/wiki/pages/${id}/revisions/${first}`)).toEqual({ ...oldest, body: 'First words.' })
  })

  test('is refused to whoever changed another revision than the current one', async () => {
    const { id, currentRevisionId: first } = await page()
    await server.ok(`/wiki/pages/${id}/revisions`, { body: { body: 'Some new words.' } })
    const stale = await publish(id, { body: 'Some stale words.', baseRevisionId: first })
    expect(outcomeOf(stale)).toBe('409 wiki_stale_base_revision')
    const { currentRevisionId: elsewhere } = await page()
    // As a page that was never published shows it.
    expect(outcomeOf(await publish(id, { body: 'Some other words.', baseRevisionId: null }))).toBe('201')
    for (const baseRevisionId of [elsewhere, 'wrev_0000000000000000'])
      expect(outcomeOf(await publish(id, { body: 'Words.', baseRevisionId }))).toBe('404 wiki_revision_not_found')
    expect(await history(id)).toHaveLength(3)
  })

  test('names all checks that fail, and answers with the first', async () => {
    const { id, currentRevisionId } = await page({ body: 'Some long enough words.' })
    await publish(id, { body: 'Some other long words.' })
    await server.ok(`/wiki/pages/${id}`, patch({ archived: true }))
    const bad = 'a [1] …2 tokens truncated…'.slice(2)
    const failedOf = async (body: Record<string, unknown>) => {
      const { error } = (await publish(id, body)).body
      const failed = error.details.failed.map(({ code }: { code: string }) => code)
      expect([error.code, error.message]).toEqual([failed[0], error.details.failed[0].message])
      return failed
    }
    expect(await failedOf({ body: bad, baseRevisionId: currentRevisionId })).toEqual([
      'wiki_stale_base_revision',
      'wiki_body_truncated',
      'wiki_citation_style',
      'wiki_publish_failed',
    ])
    expect(await failedOf({ body: '[1]' })).toEqual(['wiki_body_shrunk', 'wiki_citation_style', 'wiki_publish_failed'])
    expect(await failedOf({ body: '[1]', allowShrink: true })).toEqual(['wiki_citation_style', 'wiki_publish_failed'])
  })

  test('takes 60 % of the bytes, and less where that is meant', async () => {
    const { id } = await page({ body: 'ü'.repeat(50) })
    expect(outcomeOf(await publish(id, { body: 'x'.repeat(59) }))).toBe('422 wiki_body_shrunk')
    expect(outcomeOf(await publish(id, { body: 'x'.repeat(60) }))).toBe('201')
    expect(outcomeOf(await publish(id, { body: '', allowShrink: true }))).toBe('201')
  })

  test('parses CSV, and looks for no citations in it', async () => {
    const { id } = await page({ kind: 'csv', body: 'name,source\nA,[1]\n' })
    expect(outcomeOf(await publish(id, { body: 'name,source\n"A ""b""",[2]\n' }))).toBe('201')
    const broken = await publish(id, { body: 'name,source\nA,"[2]\n' })
    expect(outcomeOf(broken)).toBe('409 wiki_publish_failed')
    expect(broken.body.error.message).toContain('line 2')
    expect(outcomeOf(await publish(id, { body: 'name,source\nA\nB,C,D' }))).toBe('409 wiki_publish_failed')
  })

  test('of two that changed the same revision at once, one wins', async () => {
    const { id, currentRevisionId: baseRevisionId } = await page()
    const replies = await Promise.all(
      Array.from({ length: 6 }, (_, n) => publish(id, { body: `Some words by ${n}.`, baseRevisionId })),
    )
    expect(replies.map(outcomeOf).toSorted()).toEqual(['201', ...Array(5).fill('409 wiki_stale_base_revision')])
    expect(await history(id)).toHaveLength(2)
  })

  test('without a base, all that come at once are kept one after another', async () => {
    const { id } = await page()
    const replies = await Promise.all(Array.from({ length: 6 }, (_, n) => publish(id, { body: `Some words by ${n}.` })))
    expect(replies.map(outcomeOf)).toEqual(Array(6).fill('201'))
    const revisions = await history(id)
    expect(revisions.slice(0, -1).map(({ baseRevisionId }: { baseRevisionId: string }) => baseRevisionId)).toEqual(
      revisions.slice(1).map(({ id: before }: { id: string }) => before),
    )
  })
})

describe('who writes', () => {
  test('within a run is the agent, for the task of the run', async () => {
    const { agent, runId, token } = await server.agentCaller()
    const task = await makeTask({ server })
    await server.database.root('runs').where({ id: runId }).update({ task_id: task.id })
    const made = await page({}, token)
    await publish(made.id, { body: 'More words of the agent.' }, token)
    for (const revision of await history(made.id))
      expect(revision).toMatchObject({
        author: { type: 'agent', id: agent.id, name: agent.name },
        taskId: task.id,
        runId,
      })
    await page({ runId: 'current', taskId: 'current' }, token)
    await page({ runId, taskId: task.key }, token)
    const other = await server.agentCaller()
    const otherTask = await makeTask({ server })
    for (const named of [{ runId: other.runId }, { taskId: otherTask.id }]) {
      const body = { title: server.world.uuid(), body: 'x', ...named }
      expect(outcomeOf(await server.call('/wiki/pages', { body, token }))).toBe('400 validation_error')
    }
  })

  test('is a person, for the task and the run that they name and see', async () => {
    const { runId } = await server.agentCaller()
    const task = await makeTask({ server })
    const made = await page({ taskId: task.key, runId })
    expect((await history(made.id))[0]).toMatchObject({
      author: { type: 'user', id: member.userId },
      taskId: task.id,
      runId,
    })
  })

  test('is told without a task and a run to whoever does not see them', async () => {
    const { runId, token } = await server.agentCaller({ visibility: 'private' })
    const project = await server.ok('/projects', { body: { name: server.world.uuid(), visibility: 'private' } })
    const task = await makeTask({ server }, { projectId: project.id })
    await server.database.root('runs').where({ id: runId }).update({ task_id: task.id })
    const { id, currentRevisionId } = await page({}, token)
    const told = async (by: string) => {
      const [listed] = (await server.ok(`/wiki/pages/${id}/revisions`, { token: by })).data
      const read = await server.ok(`/wiki/pages/${id}/revisions/${currentRevisionId}`, { token: by })
      expect([read.taskId, read.runId]).toEqual([listed.taskId, listed.runId])
      return [listed.taskId, listed.runId]
    }
    expect(await told(server.owner.token)).toEqual([task.id, runId])
    expect(await told(member.token)).toEqual([null, null])
    const restored = await server.ok(`/wiki/pages/${id}/revisions/${currentRevisionId}/restore`, {
      body: {},
      token: member.token,
    })
    expect([restored.taskId, restored.runId]).toEqual([null, null])
  })

  test('within a run leaves out the secrets of its agent', async () => {
    const { agent, token } = await server.agentCaller()
    const value = `t0p-${server.world.uuid()}`
    const secret = await server.ok('/secrets', { body: { name: server.world.uuid(), value } })
    await server.ok(`/secrets/${secret.id}/grants`, { body: { agentId: agent.id } })
    const { id, body } = await page({ body: `The key is ${value}, [here](https://example.com/?k=${value}).` }, token)
    expect(body).toContain('The key is ')
    const links = await server.ok(`/wiki/pages/${id}/sources`)
    expect(JSON.stringify([body, links])).not.toContain(value)
  })
})

describe('a restored revision', () => {
  test('is published once more, with its title and links, whatever its checks', async () => {
    const first = await page({ title: 'First title', slug: server.world.uuid(), body: 'See [[first]].' })
    await publish(first.id, { body: 'See [[second]], and more.', title: 'Second title' })
    const path = `/wiki/pages/${first.slug}/revisions/${first.currentRevisionId}/restore`
    const restored = await server.ok(path, { method: 'POST', token: member.token })
    expect(restored).toMatchObject({ title: 'First title', body: 'See [[first]].', isPublished: true })
    expect(restored.id).not.toBe(first.currentRevisionId)
    expect(restored.page).toMatchObject({ title: 'First title', currentRevisionId: restored.id })
    expect(await history(first.id)).toHaveLength(3)
    const { data: sources } = await server.ok(`/wiki/pages/${first.id}/sources`)
    expect(sources.map(({ url }: { url: string }) => url)).toEqual(['/wiki/first'])
  })

  test('may be one that was never published', async () => {
    const made = await page({ body: 'As shown elsewhere.' })
    const { root } = server.database
    await root('wiki_pages').where({ id: made.id }).update({ current_revision_id: null, token_count: null })
    await root('wiki_revisions')
      .where({ page_id: made.id })
      .update({ body: 'As shown [1].', failed_checks: '["wiki_citation_style"]' })
    expect((await history(made.id))[0]).toMatchObject({ isPublished: false, failedChecks: ['wiki_citation_style'] })
    await server.ok(`/wiki/pages/${made.id}/revisions/${made.currentRevisionId}/restore`, { method: 'POST' })
    expect(await server.ok(`/wiki/pages/${made.id}`)).toMatchObject({ body: 'As shown [1].' })
    expect((await history(made.id)).map(({ isPublished }: { isPublished: boolean }) => isPublished)).toEqual([
      true,
      false,
    ])
  })

  test('is one of this page, which is live, and CSV must parse', async () => {
    const [one, other] = [await page(), await page({ kind: 'csv', body: 'a,b' })]
    const restore = async (id: string, revisionId: string) =>
      outcomeOf(await server.call(`/wiki/pages/${id}/revisions/${revisionId}/restore`, { method: 'POST' }))
    expect(await restore(one.id, other.currentRevisionId)).toBe('404 wiki_revision_not_found')
    expect(await restore(one.id, 'junk')).toBe('400 invalid_id_format')
    await server.database.root('wiki_revisions').where({ page_id: other.id }).update({ body: 'a,"b' })
    expect(await restore(other.id, other.currentRevisionId)).toBe('409 wiki_publish_failed')
    await server.ok(`/wiki/pages/${one.id}`, patch({ archived: true }))
    expect(await restore(one.id, one.currentRevisionId)).toBe('409 wiki_publish_failed')
  })
})
