import { createHmac } from 'node:crypto'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest'
import { webhookLimits } from '../../../shared/api/webhook-fields.ts'
import { FakeDevice } from '../../kit/fake-device.ts'
import { HookReceiver, type Received } from '../../kit/hook-receiver.ts'
import { outcomeOf, TestServer, type Person } from '../../kit/server.ts'
import { questionCalls, secretsKey } from './questions-kit.ts'

// Webhooks of a workspace: what is sent to whom, how it is signed, and what becomes of it when the receiver does not take it.

const hourMs = 3_600_000
let server: TestServer, receiver: HookReceiver, admin: Person
beforeAll(async () => {
  server = await TestServer.start({ settings: { SVC_ALLOW_HOSTS: '127.0.0.1,localhost', ...secretsKey } })
})
afterAll(() => server.stop())
// Each has a workspace of its own, so that nobody hears of the events of another.
beforeEach(async () => {
  receiver = await HookReceiver.start()
  admin = await server.addPerson('owner', `w-${server.world.uuid().slice(0, 8)}`)
})
afterEach(() => receiver.stop())

const { ask } = questionCalls(() => ({ server, member: admin }))
const call = (path: string, method = 'POST', body?: unknown, token = admin.token) =>
  server.call(path, {
    method,
    token,
    headers: { 'Idempotency-Key': crypto.randomUUID() },
    ...(body !== undefined && { body }),
  })
const ok = async (path: string, method = 'POST', body?: unknown) => {
  const reply = await call(path, method, body)
  expect(reply.status, JSON.stringify(reply.body)).toBeLessThan(300)
  return reply.body
}
const create = (events: readonly string[], more: object = {}) =>
  ok('/webhooks', 'POST', { url: receiver.url, events, ...more })
const replicas = Math.max(1, inject('replicas'))
/** Looks for what is due, and waits until all of it is sent; the other replica may be at some of it. */
async function settle(): Promise<void> {
  await server.plane.sweeper.runAll()
  if (replicas > 1) await expect.poll(countUnderWay, { interval: 10 }).toBe(0)
}
/** Events and deliveries that are due, or claimed for the minute that a claim lasts. */
async function countUnderWay(): Promise<number> {
  const { root } = server.database
  const own = { workspace_id: admin.workspaceId }
  const due = root('webhook_deliveries')
    .where(own)
    .whereRaw('(due_at <= ? or due_at = last_attempt_at + 60000)', [server.world.now()])
  return (await root('webhook_events').where(own)).length + (await due).length
}
const deliveriesOf = async (id: string) => (await ok(`/webhooks/${id}/deliveries`, 'GET')).data
const get = (id: string) => ok(`/webhooks/${id}`, 'GET')

/** A run of the admin that was cancelled. */
async function cancelledRun(): Promise<string> {
  const agent = await server.createAgent({}, admin.token)
  const id = await server.startRun(agent.id, { prompt: 'Do it.' }, admin.token)
  await ok(`/runs/${id}/cancel`, 'POST', {})
  return id
}

/** The signatures of a delivery, as a receiver checks them. */
function signaturesOf({ headers, body }: Received): { t: number; isSignedBy: (secret: string) => boolean } {
  const parts = String(headers['svc-signature'])
    .split(',')
    .map((part) => part.split('=') as [string, string])
  const t = parts.find(([name]) => name === 't')![1]
  const signed = parts.filter(([name]) => name === 'v1').map(([, hex]) => hex)
  const by = (secret: string) => createHmac('sha256', secret).update(`${t}.${body}`).digest('hex')
  return { t: Number(t), isSignedBy: (secret) => signed.includes(by(secret)) }
}

describe('an event', () => {
  test('of a run that failed comes signed, and its delivery is shown', async () => {
    const { id, secret } = await create(['run.failed'], { description: 'pager' })
    expect(secret).toMatch(/^whsec_\w{40}$/)
    const device = await FakeDevice.connect(server, { token: admin.token })
    const agent = await server.createAgent({}, admin.token)
    const runId = await server.startRun(agent.id, { prompt: 'Do it.' }, admin.token)
    await (await device.take()).end('error')
    const [received] = await receiver.until('run.failed')
    await settle()
    await device.disconnect()
    const { headers, json } = received!
    const shown = await server.ok(`/runs/${runId}`, { token: admin.token })
    expect(json).toEqual({
      object: 'event',
      id: headers['svc-event-id'],
      type: 'run.failed',
      createdAt: expect.any(String),
      workspaceId: admin.workspaceId,
      data: shown,
    })
    expect(json.data).toMatchObject({ object: 'run', id: runId, status: 'failed' })
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'svc-event-type': 'run.failed',
      'svc-delivery-id': expect.stringMatching(/^whd_\w{16}$/),
      'user-agent': expect.stringMatching(/^svc-webhooks\//),
    })
    const { t, isSignedBy } = signaturesOf(received!)
    expect(Math.abs(t - server.world.now() / 1_000)).toBeLessThan(60)
    expect(isSignedBy(secret)).toBe(true)
    const [delivery, ...others] = await deliveriesOf(id)
    expect(others).toEqual([])
    expect(delivery).toMatchObject({
      id: headers['svc-delivery-id'],
      eventId: headers['svc-event-id'],
      status: 'succeeded',
      attempts: 1,
      responseStatus: 200,
      nextAttemptAt: null,
      error: null,
    })
    const detail = await ok(`/webhooks/${id}/deliveries/${delivery.id}`, 'GET')
    expect(detail).toEqual({ ...delivery, payload: json, responseBody: 'thanks' })
    expect(await get(id)).not.toHaveProperty('secret')
  })

  test('goes to those who chose it, in one delivery each, and to no other workspace', async () => {
    const [failed, all] = [await create(['run.failed']), await create(['*'])]
    const mine = admin
    admin = await server.addPerson('owner', `w-${server.world.uuid().slice(0, 8)}`)
    const elsewhere = await create(['*'])
    expect((await deliveriesOf(elsewhere.id)).length).toBe(0)
    admin = mine
    const runId = await cancelledRun()
    await settle()
    expect(receiver.received.map(({ json }) => [json.type, json.data.id])).toEqual([['run.cancelled', runId]])
    expect(await deliveriesOf(failed.id)).toEqual([])
    expect(await deliveriesOf(all.id)).toHaveLength(1)
  })

  test('of tasks, approvals and questions holds what the API shows', async () => {
    await create(['task.created', 'task.status_changed', 'approval.requested', 'approval.resolved', 'question.asked'])
    const task = await ok('/tasks', 'POST', { title: 'Paint it' })
    const agent = await server.createAgent({}, admin.token)
    const runId = await server.startRun(agent.id, {}, admin.token)
    const token = await server.runToken(runId)
    const gated = { prompt: 'Deploy build 17?', gatedThing: { name: 'deploy' } }
    const { approval } = (
      await server.call('/approvals', { body: gated, token, headers: { 'Idempotency-Key': crypto.randomUUID() } })
    ).body
    await call(`/approvals/${approval.id}/reject`, 'POST', { reason: 'Not today' })
    const other = await server.agentCaller({}, { token: admin.token })
    const { question } = (await ask(other.token)).body
    await settle()
    const byType = Object.fromEntries(receiver.received.map(({ json }) => [json.type, json]))
    expect(byType['task.created'].data).toMatchObject({ object: 'task', id: task.id, title: 'Paint it' })
    expect(byType['approval.requested'].data).toMatchObject({ object: 'approval', id: approval.id })
    expect(byType['approval.resolved'].data).toMatchObject({ id: approval.id, result: { outcome: 'reject' } })
    expect(byType['question.asked'].data).toMatchObject({ id: question.id, prompt: 'Which one?' })
  })

  test('of a task that moved says from where to where', async () => {
    await create(['task.status_changed'])
    const task = await ok('/tasks', 'POST', { title: 'Paint it' })
    await ok(`/tasks/${task.id}/transition`, 'POST', { status: 'in_progress' })
    await settle()
    const [moved] = receiver.of('task.status_changed')
    expect(moved!.json).toMatchObject({
      change: { from: 'open', to: 'in_progress' },
      data: { id: task.id, status: 'in_progress' },
    })
  })

  test('is cut where it is large, and says so', async () => {
    await create(['task.created'])
    await ok('/tasks', 'POST', { title: 'Much', description: 'x'.repeat(60_000) })
    await settle()
    const [received] = receiver.of('task.created')
    expect(Buffer.byteLength(received!.body)).toBeLessThanOrEqual(32 * 1024)
    expect(received!.json).toMatchObject({ truncated: true, data: { title: 'Much' } })
  })

  test('costs a workspace without a webhook no row', async () => {
    const { root } = server.database
    await create(['run.failed'])
    await cancelledRun()
    expect(await root('webhook_events').where({ workspace_id: admin.workspaceId })).toEqual([])
  })

  test('comes to Slack as a line in which nobody’s words are a mention or a link', async () => {
    await create(['task.created'], { form: 'slack' })
    const { id, key } = await ok('/tasks', 'POST', { title: '<!channel> & <https://evil.test|here>' })
    await settle()
    const [received] = receiver.of('task.created')
    expect(received!.json).toEqual({
      text: `Task <${server.plane.url}/api/v1/tasks/${id}|${key}> is new: &lt;!channel&gt; &amp; &lt;https://evil.test|here&gt;`,
    })
  })
})

describe('a receiver that does not take a delivery', () => {
  test('gets it again under the same ids, later each time, for about a day', async () => {
    const { id, secret } = await create(['run.cancelled'])
    receiver.status(503)
    await cancelledRun()
    await settle()
    const begun = server.world.now()
    const waits: number[] = []
    for (;;) {
      const [delivery] = await deliveriesOf(id)
      if (delivery.nextAttemptAt === null) break
      const waitMs = Date.parse(delivery.nextAttemptAt) - server.world.now()
      waits.push(waitMs)
      server.world.advance(waitMs + 1_000)
      await settle()
    }
    const tookMs = server.world.now() - begun
    expect(tookMs).toBeGreaterThan(17 * hourMs)
    expect(tookMs).toBeLessThan(30 * hourMs)
    expect(waits[0]).toBeLessThan(15_000)
    expect(waits.at(-1)).toBeGreaterThan(6 * hourMs)
    const [delivery] = await deliveriesOf(id)
    expect(delivery).toMatchObject({ status: 'failed', attempts: 10, responseStatus: 503 })
    expect(delivery.error).toContain('503')
    expect(receiver.received).toHaveLength(10)
    expect(new Set(receiver.received.map(({ headers }) => headers['svc-event-id'])).size).toBe(1)
    expect(new Set(receiver.received.map(({ headers }) => headers['svc-delivery-id'])).size).toBe(1)
    expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1)
    expect(receiver.received.every((received) => signaturesOf(received).isSignedBy(secret))).toBe(true)
    expect(signaturesOf(receiver.received[9]!).t - signaturesOf(receiver.received[0]!).t).toBeGreaterThan(60_000)
    expect((await get(id)).failingSince).not.toBeNull()
    // Somebody asks for it again, once the receiver works.
    receiver.status(200)
    const again = await ok(`/webhooks/${id}/deliveries/${delivery.id}/redeliver`)
    expect(again).toMatchObject({ status: 'waiting', redeliveryOf: delivery.id, eventId: delivery.eventId })
    await receiver.until('run.cancelled', 11)
    await settle()
    expect(receiver.received.at(-1)!.headers).toMatchObject({
      'svc-event-id': delivery.eventId,
      'svc-delivery-id': again.id,
    })
    expect((await get(id)).failingSince).toBeNull()
  })

  test('for days has its webhook disabled, which says so and sends nothing', async () => {
    const { id } = await create(['run.cancelled'])
    receiver.status(500)
    await cancelledRun()
    await settle()
    for (let round = 0; round < 12; round++) {
      server.world.advance(12 * hourMs)
      if (round % 2 === 0) await cancelledRun()
      await settle()
      await settle()
    }
    for (let round = 0; round < 10 && (await get(id)).status === 'active'; round++) {
      server.world.advance(10 * hourMs)
      await settle()
    }
    expect(await get(id)).toMatchObject({ status: 'disabled', disabledReason: 'failing' })
    const count = receiver.received.length
    await cancelledRun()
    server.world.advance(24 * hourMs)
    await settle()
    expect(receiver.received).toHaveLength(count)
    expect(outcomeOf(await call(`/webhooks/${id}/ping`))).toBe('409 webhook_disabled')
    receiver.status(200)
    expect(await ok(`/webhooks/${id}`, 'PATCH', { status: 'active' })).toMatchObject({
      status: 'active',
      disabledReason: null,
      failingSince: null,
    })
    await ok(`/webhooks/${id}/ping`)
    await receiver.until('ping')
  })

  test('any more (410) has its webhook disabled at once, with all that waits', async () => {
    const { id } = await create(['run.cancelled'])
    receiver.status(503)
    await cancelledRun()
    await settle()
    receiver.status(410)
    await cancelledRun()
    await settle()
    expect(await get(id)).toMatchObject({ status: 'disabled', disabledReason: 'gone' })
    expect((await deliveriesOf(id)).map(({ status }: { status: string }) => status)).toEqual(['failed', 'failed'])
  })

  test('but sends elsewhere is not followed', async () => {
    const { id } = await create(['run.cancelled'])
    receiver.status(307, { location: receiver.url.replace('/hook', '/other') })
    await cancelledRun()
    await settle()
    expect(receiver.received.map(({ path }) => path)).toEqual(['/hook'])
    const [delivery] = await deliveriesOf(id)
    expect(delivery).toMatchObject({ status: 'waiting', responseStatus: 307 })
    expect(delivery.error).toContain('redirects are not followed')
  })
})

test('an answer of any size counts, and its beginning is shown', async () => {
  const { id } = await create(['run.cancelled'])
  receiver.answer = (response) => void response.writeHead(200).end('\0y'.repeat(5_000_000))
  await cancelledRun()
  await settle()
  const [{ id: deliveryId, status }] = await deliveriesOf(id)
  expect(status).toBe('succeeded')
  const { responseBody } = await ok(`/webhooks/${id}/deliveries/${deliveryId}`, 'GET')
  expect(responseBody).toBe('y'.repeat(512))
})

test('a webhook that is deleted in the middle of a delivery is gone, and nothing of it comes back', async () => {
  const { id } = await create(['run.cancelled'])
  const held = Promise.withResolvers<() => void>()
  receiver.answer = (response) => held.resolve(() => void response.writeHead(500).end())
  await cancelledRun()
  const settled = settle()
  const letGo = await held.promise
  expect(outcomeOf(await call(`/webhooks/${id}`, 'DELETE'))).toBe('204')
  letGo()
  await settled
  expect(await server.database.root('webhook_deliveries').where({ webhook_id: id })).toEqual([])
  expect(outcomeOf(await call(`/webhooks/${id}`, 'GET'))).toBe('404 webhook_not_found')
})

test('the old secret signs beside the new one for a day', async () => {
  const { id, secret: old } = await create(['run.cancelled'])
  const rotated = await ok(`/webhooks/${id}/rotate-secret`)
  expect(rotated.secret).not.toBe(old)
  expect(Date.parse(rotated.oldSecretUntil) - server.world.now()).toBeLessThanOrEqual(24 * hourMs)
  await cancelledRun()
  await settle()
  server.world.advance(24 * hourMs + 1)
  await cancelledRun()
  await settle()
  const [within, after] = receiver.received.map(signaturesOf)
  expect([old, rotated.secret].map((secret) => within!.isSignedBy(secret))).toEqual([true, true])
  expect([old, rotated.secret].map((secret) => after!.isSignedBy(secret))).toEqual([false, true])
  expect((await get(id)).oldSecretUntil).toBeNull()
})

test('a private address is refused unless the operator allows it, and so is a name before the host', async () => {
  for (const url of [
    'https://10.1.2.3/',
    'https://169.254.169.254/',
    'http://example.com/',
    'https://a:b@example.com/',
  ])
    expect(outcomeOf(await call('/webhooks', 'POST', { url, events: ['*'] }))).toBe('400 webhook_url_refused')
  for (const url of ['ftp://example.com/', 'nonsense', 'https://a b/'])
    expect(outcomeOf(await call('/webhooks', 'POST', { url, events: ['*'] }))).toBe('400 validation_error')
})

test('a slow host takes few places, and holds up nobody else', async () => {
  const slow = await HookReceiver.start()
  const held: (() => void)[] = []
  slow.answer = (response) => void held.push(() => void response.end())
  await create(['run.cancelled'], { url: slow.url.replace('127.0.0.1', 'localhost') })
  const { id } = await create(['run.cancelled'])
  for (let n = 0; n < 10; n++) await cancelledRun()
  const settled = settle()
  await receiver.until('run.cancelled', 10)
  expect(slow.received.length).toBeLessThanOrEqual(4 * replicas)
  slow.answer = (response) => void response.end()
  for (const letGo of held) letGo()
  await settled
  expect(slow.received).toHaveLength(10)
  const statuses = (await deliveriesOf(id)).map(({ status }: { status: string }) => status)
  expect(new Set(statuses)).toEqual(new Set(['succeeded']))
  await slow.stop()
})

describe('who makes and who sees them', () => {
  test('is for admins alone', async () => {
    const { id } = await create(['*'])
    const member = await server.addPerson('member')
    for (const [path, method] of [
      ['/webhooks', 'GET'],
      [`/webhooks/${id}`, 'GET'],
      [`/webhooks/${id}/deliveries`, 'GET'],
      [`/webhooks/${id}/ping`, 'POST'],
    ] as const)
      expect(outcomeOf(await call(path, method, undefined, member.token))).toBe('403 http_exception')
  })

  test('a webhook whose maker administers the workspace no more sends nothing, and says so', async () => {
    const { id } = await create(['run.cancelled'])
    await cancelledRun()
    await settle()
    const count = receiver.received.length
    const { root } = server.database
    await root('members').where({ workspace_id: admin.workspaceId, user_id: admin.uuid }).update({ role: 'member' })
    const agent = await server.createAgent({}, admin.token)
    const other = await server.startRun(agent.id, { prompt: 'Do it.' }, admin.token)
    await ok(`/runs/${other}/cancel`, 'POST', {})
    await settle()
    await root('members').where({ workspace_id: admin.workspaceId, user_id: admin.uuid }).update({ role: 'owner' })
    expect(receiver.received).toHaveLength(count)
    expect(await get(id)).toMatchObject({ status: 'disabled', disabledReason: 'owner_left' })
  })

  test('a workspace has so many at most', async () => {
    for (let n = 0; n < webhookLimits.perWorkspace; n++) await create(['*'])
    expect(outcomeOf(await call('/webhooks', 'POST', { url: receiver.url, events: ['*'] }))).toBe(
      '400 validation_error',
    )
  })
})
