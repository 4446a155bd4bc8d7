import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { openDatabase } from '../../../control-plane/db/open.ts'
import { hasPostgres } from '../../kit/database.ts'
import { HookReceiver } from '../../kit/hook-receiver.ts'
import { movableWorld, TestServer } from '../../kit/server.ts'

// Replicas that look for what is due beside one another, and one that stops.

describe.skipIf(!hasPostgres())('two replicas', () => {
  let first: TestServer, second: TestServer, receiver: HookReceiver
  beforeAll(async () => {
    receiver = await HookReceiver.start()
    const settings = { SVC_ALLOW_HOSTS: '127.0.0.1' }
    first = await TestServer.start({ database: 'postgres', settings })
    second = await TestServer.start({ beside: first, settings })
  })
  afterAll(async () => {
    await second.stop()
    await first.stop()
    await receiver.stop()
  })
  const settle = () => Promise.all([first, second].map(({ plane }) => plane.sweeper.runAll()))

  test('send each event once, whichever of them looks first', async () => {
    const { id } = await first.ok('/webhooks', { body: { url: receiver.url, events: ['task.created'] } })
    const titles = Array.from({ length: 40 }, (_, n) => `Task ${n}`)
    const make = (title: string, n: number) =>
      (n % 2 === 0 ? first : second).ok('/tasks', {
        body: { title, force: true },
        headers: { 'Idempotency-Key': crypto.randomUUID() },
      })
    for (const half of [titles.slice(0, 20), titles.slice(20)])
      await Promise.all([...half.map(make), settle(), settle()])
    await settle()
    expect(
      receiver
        .of('task.created')
        .map(({ json }) => json.data.title as string)
        .toSorted(),
    ).toEqual(titles.toSorted())
    const { data } = await second.ok(`/webhooks/${id}/deliveries?limit=100`)
    expect(data).toHaveLength(40)
    expect(data.every(({ attempts, status }: never) => attempts === 1 && status === 'succeeded')).toBe(true)
  })

  test('a change that meets a webhook which is made or deleted at the same moment is made all the same', async () => {
    for (let round = 0; round < 5; round++) {
      const [{ id }] = await Promise.all([
        first.ok('/webhooks', { body: { url: receiver.url, events: ['*'] } }),
        second.ok('/tasks', {
          body: { title: `Round ${round}`, force: true },
          headers: { 'Idempotency-Key': crypto.randomUUID() },
        }),
      ])
      await Promise.all([
        settle(),
        first.ok(`/webhooks/${id}`, { method: 'DELETE' }),
        second.ok('/tasks', {
          body: { title: `Round ${round} again`, force: true },
          headers: { 'Idempotency-Key': crypto.randomUUID() },
        }),
      ])
    }
    await settle()
    expect(await first.database.root('webhook_events')).toEqual([])
  })
})

test('a server that stops leaves a receiver that hangs, and the delivery is still to be made', async () => {
  const receiver = await HookReceiver.start()
  receiver.answer = () => undefined
  const world = movableWorld()
  // What is under way has a moment, which is shorter here.
  const after: typeof world.after = (ms, fn) => world.after(ms === 3_000 ? 1 : ms, fn)
  const folder = mkdtempSync(join(inject('databases').folder, 'webhooks-'))
  const [settings, file] = [{ SVC_ALLOW_HOSTS: '127.0.0.1' }, join(folder, 'svc.db')]
  const server = await TestServer.start({ settings, file, world: { ...world, after } })
  const { id } = await server.ok('/webhooks', { body: { url: receiver.url, events: ['*'] } })
  await server.ok(`/webhooks/${id}/ping`, { method: 'POST' })
  await receiver.until('ping')
  await server.stop()
  const database = openDatabase({ url: file })
  expect(await database.root('webhook_deliveries')).toEqual([
    expect.objectContaining({ status: 'waiting', attempts: 1, due_at: expect.any(Number), error: null }),
  ])
  await database.close()
  await receiver.stop()
})
