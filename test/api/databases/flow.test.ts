import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hasPostgres } from '../../kit/database.ts'
import { openStream } from '../../kit/event-stream.ts'
import { FakeDevice } from '../../kit/fake-device.ts'
import { askedCallFixture } from '../../kit/asked-call.ts'
import { outcomeOf, TestServer } from '../../kit/server.ts'
import { newRepo } from '../facts/kit/recipe.ts'
import { makeDm, say } from '../../kit/talk.ts'

/** The main job from wake to result, on either database; and what only several writers or replicas can show. */
for (const database of ['sqlite', 'postgres'] as const)
  describe.skipIf(database === 'postgres' && !hasPostgres())(`on ${database}`, () => {
    let server: TestServer
    beforeAll(async () => {
      server = await TestServer.start({ database })
    })
    afterAll(() => server.stop())

    test('a run ends and says its last word, though its agent and its harness write zero bytes', async () => {
      const agent = await server.createAgent({ harness: 'claude' })
      const { id } = await makeDm(server, agent.id)
      await say(server, id, 'Begin')
      const device = await FakeDevice.connect(server)
      const run = await device.take()
      const asked = askedCallFixture({ prompt: 'Allow a\0b?', safeSummary: 'a\0b' })
      const permission = { name: asked.name, decision: 'ask', ask: asked } as const
      await run.events({ kind: 'session', data: { sessionId: 's\0' } }, { kind: 'permission', data: permission })
      await run.events({ kind: 'result', data: { text: 'Done\0', isError: false } })
      await run.end('error', { message: 'It broke\0', sessionId: 's\0' })
      await device.disconnect()
      expect(await server.ok(`/runs/${run.runId}`)).toMatchObject({ status: 'failed', errorMessage: 'It broke\ufffd' })
      expect((await server.ok(`/approvals?runId=${run.runId}`)).data).toMatchObject([{ prompt: 'Allow a\ufffdb?' }])
      const messages = (await server.ok(`/conversations/${id}/messages`)).data as { body: string }[]
      expect(messages.map(({ body }) => body)).toEqual(['Begin', 'Done\ufffd'])
    })

    test('an agent works in a folder of a device, and everything about it can be read', async () => {
      const device = await FakeDevice.connect(server)
      const folder = await server.ok('/folders', {
        body: { displayName: 'repo', rootPath: '/repo', deviceId: device.identity.publicId },
      })
      const agent = await server.createAgent({ name: 'Worker', defaultFolderId: folder.shortId, harness: 'claude' })
      const body = { prompt: 'Do the work', idempotencyKey: 'job-1' }
      const wake = () => server.ok(`/agents/@worker/runs`, { body })
      const { kind, runPublicId: runId } = await wake()
      expect(kind).toBe('queued')
      const run = await device.take()
      expect(run.spec).toMatchObject({ runId, prompt: 'Do the work', folder: { rootPath: '/repo' } })
      expect((await wake()).runPublicId).toBe(runId)
      const stream = await openStream(server, `/runs/${runId}/events`)
      await run.events({ kind: 'session', data: { sessionId: 's' } }, { kind: 'text', data: { text: 'Working' } })
      expect((await stream.take(2)).map((message) => message.event)).toEqual(['session', 'text'])
      const agentMdHash = createHash('sha256').update('').digest('hex')
      const own = { token: run.token, method: 'PUT', body: { agentMd: 'Learned', agentMdHash } }
      expect((await server.ok('/agents/me/identity/agent-md', own)).agentMd).toBe('Learned')
      expect((await server.call('/agents', { token: run.token, body: { name: 'Child' } })).status).toBe(202)
      await server.ok('/runs/current/output', { token: run.token, body: { data: { ok: true } } })
      await run.events({ kind: 'result', data: { text: 'Finished', isError: false } })
      await run.end('completed', { usage: { costUsd: '0.10' }, toolCallCount: 2 })
      expect((await stream.rest()).map((message) => message.event)).toEqual(['result', 'ended', 'end'])
      expect(await server.ok(`/runs/${runId}?expand[]=transcriptRead`)).toMatchObject({
        status: 'succeeded',
        costUsd: '0.10',
        toolCallCount: 2,
        environment: { cwd: 'repo-root', deviceId: device.identity.deviceId },
        transcriptRead: { finalAnswer: 'Finished', eventCount: 4 },
      })
      expect((await server.ok(`/runs/${runId}/events?sort=desc&limit=1`)).data).toMatchObject([
        { seq: 4, kind: 'ended' },
      ])
      expect((await server.ok(`/runs/${runId}/manifest`)).folder).toEqual({
        shortId: folder.shortId,
        rootPath: '/repo',
      })
      expect((await server.ok(`/runs?agent=${agent.id}&status=succeeded`)).data).toHaveLength(1)
      expect(outcomeOf(await server.call('/agents/me', { token: run.token }))).toBe('401 auth_revoked')
      await device.disconnect()
      expect((await server.call(`/devices/${device.identity.deviceId}`, { method: 'DELETE' })).status).toBe(204)
      expect((await server.ok('/folders')).sources[0].status).toBe('revoked')
    })

    test('many wakes with one key at once are one wake', async () => {
      const agent = await server.createAgent()
      const replies = await Promise.all(
        Array.from({ length: 8 }, () => server.ok(`/agents/${agent.id}/runs`, { body: { idempotencyKey: 'one' } })),
      )
      expect(new Set(replies.map((reply) => reply.runPublicId)).size).toBe(1)
      expect((await server.ok(`/runs?agent=${agent.id}`)).data).toHaveLength(1)
    })

    test('pages hold while rows are added, and are walked to the end', async () => {
      const agent = await server.createAgent()
      const ids: string[] = []
      for (let n = 0; n < 7; n++) ids.unshift(await server.startRun(agent.id))
      const seen: string[] = []
      for (let cursor: string | null = ''; cursor !== null;) {
        const after: string = cursor === '' ? '' : `&after=${cursor}`
        const page = await server.ok(`/runs?agent=${agent.id}&limit=3${after}`)
        seen.push(...page.data.map((run: { id: string }) => run.id))
        cursor = page.nextCursor as string | null
        await server.startRun(agent.id)
      }
      expect(seen.filter((id) => ids.includes(id))).toEqual(ids)
      expect(new Set(seen).size).toBe(seen.length)
    })
  })

describe.skipIf(!hasPostgres())('two replicas', () => {
  let first: TestServer
  let second: TestServer
  beforeAll(async () => {
    first = await TestServer.start({ database: 'postgres' })
    second = await TestServer.start({ beside: first })
  })
  afterAll(async () => {
    await second.stop()
    await first.stop()
  })

  test('a run whose link is on one replica is woken, followed, asked and cancelled on the other', async () => {
    const device = await FakeDevice.connect(first)
    const agent = await first.createAgent()
    const runId = await second.startRun(agent.id)
    const run = await device.take()
    const stream = await openStream(second, `/runs/${runId}/events`)
    await run.events({ kind: 'text', data: { text: 'across' } })
    expect((await stream.take(1))[0]).toMatchObject({ event: 'text', data: { seq: 1 } })
    device.changeSetAnswer = () => ({ ok: false, code: 'too_large', message: 'large' })
    expect(outcomeOf(await second.call(`/runs/${runId}/change-set`))).toBe('413 too_large')
    await second.ok(`/runs/${runId}/cancel`, { body: { reason: 'stop' } })
    expect((await device.next('run.cancel')).reason).toBe('stop')
    await run.end('interrupted')
    expect((await stream.rest()).at(-1)).toMatchObject({ event: 'end', data: { exitReason: 'interrupted' } })
    await second.ok(`/devices/${device.identity.deviceId}`, { method: 'PATCH', body: { displayName: 'Far' } })
    expect((await device.next('config.changed')).displayName).toBe('Far')
    await second.call(`/devices/${device.identity.deviceId}`, { method: 'DELETE' })
    expect(await device.closed).toBe(4011)
  })

  test('a handle that another write takes meanwhile is that of another', async () => {
    const { root } = first.database
    const taker = await first.createAgent({ name: 'Quick' })
    const victim = await first.createAgent({ name: 'Victim' })
    for (const attempt of [
      () => first.call(`/agents/${victim.id}`, { method: 'PATCH', body: { name: 'Disputed' } }),
      () => first.call('/agents', { body: { name: 'Disputed' } }),
    ]) {
      const other = await root.transaction()
      await other('agents').where({ id: taker.id }).update({ handle: 'disputed' })
      const answer = attempt()
      await waitsForLock(first)
      await other.commit()
      const { status, body } = await answer
      expect([200, 201]).toContain(status)
      expect(body.handle).toMatch(/^@disputed-\d$/)
      await root('agents').where({ id: taker.id }).update({ handle: 'quick' })
    }
  })

  test('a row that another write changes meanwhile is read again', async () => {
    const { root } = first.database
    const agent = await first.createAgent()
    const { deviceId } = (await FakeDevice.connect(first)).identity
    for (const [table, where, attempt] of [
      ['agents', { id: agent.id }, () => first.call(`/agents/${agent.id}`, { method: 'PATCH', body: { role: 'x' } })],
      [
        'agents',
        { id: agent.id },
        () => first.call(`/agents/${agent.id}/config`, { method: 'PUT', body: { agentMd: crypto.randomUUID() } }),
      ],
      [
        'devices',
        { device_id: deviceId },
        () => first.call(`/devices/${deviceId}`, { method: 'PATCH', body: { displayName: 'x' } }),
      ],
      ['devices', { device_id: deviceId }, () => first.call(`/devices/${deviceId}`, { method: 'DELETE' })],
    ] as const) {
      const other = await root.transaction()
      const column = table === 'agents' ? 'version' : 'row_version'
      await other(table).where(where).increment(column, 1)
      const answer = attempt()
      await waitsForLock(first)
      await other.commit()
      const reply = await answer
      expect(reply.status, JSON.stringify(reply.body)).toBeLessThan(300)
    }
  })

  test('a repo that another folder takes meanwhile is repo_already_mapped', async () => {
    const { root } = first.database
    const device = await FakeDevice.connect(first)
    const make = () =>
      first.ok('/folders', { body: { displayName: 'f', rootPath: '/f', deviceId: device.identity.publicId } })
    const [a, b] = [await make(), await make()]
    const repoId = await newRepo({ server: first })
    const other = await root.transaction()
    await other('folders').where({ short_id: a.shortId }).update({ repo_id: repoId })
    const answer = first.call(`/folders/${b.shortId}`, { method: 'PATCH', body: { repoId } })
    await waitsForLock(first)
    await other.commit()
    expect(outcomeOf(await answer)).toBe('409 repo_already_mapped')
  })
})

/** Resolves when a transaction of the server waits for a lock that the test holds. */
async function waitsForLock(server: TestServer): Promise<void> {
  await expect
    .poll(
      async () => {
        const sql =
          "select count(*) as n from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
        const { rows } = (await server.database.root.raw(sql)) as { rows: { n: number }[] }
        return Number(rows[0]?.n)
      },
      { timeout: 10_000, interval: 10 },
    )
    .toBeGreaterThan(0)
}
