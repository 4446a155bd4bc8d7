import { expect } from 'vitest'
import {
  claimWebhookDelivery,
  countWaiting,
  findDelivery,
  giveUpDeliveries,
  listDeliveries,
  listDueOf,
  listWebhooksWithDue,
  noteAttempt,
  removeBeyond,
  removeOldWebhookDeliveries,
} from '../../control-plane/resources/webhooks/delivery-store.ts'
import {
  claimEvent,
  listDueEvents,
  recordEvent,
  removeEvent,
  removeOldEvents,
} from '../../control-plane/resources/webhooks/event-store.ts'
import {
  countWebhooks,
  disableWebhook,
  findWebhook,
  listActiveWebhooks,
  listActiveWebhooksByIds,
  listWebhooks,
  noteFailing,
  removeWebhook,
  replaceWebhook,
} from '../../control-plane/resources/webhooks/store.ts'
import type { Db } from '../../control-plane/db/open.ts'
import { findWorkspace, markRemoved } from '../../control-plane/resources/workspaces/store.ts'
import { inTransaction } from '../../control-plane/db/transaction.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { onBoth } from '../kit/database.ts'
import { at, seedWorkspace } from './seed.ts'
import { seedDelivery, seedWebhook } from './webhook-rows.ts'

const world = { ...realWorld, now: () => at }
const eventsOf = async (db: Db, workspaceId: string) =>
  (await listDueEvents(db, { now: at, limit: 100 })).filter((event) => event.workspaceId === workspaceId)

onBoth('a webhook comes back as it was stored, is changed by one writer at a time, and goes', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const stored = await seedWebhook(root, workspaceId, { events: ['run.failed'], oldSecret: Buffer.from('old') })
  expect(await findWebhook(root, workspaceId, stored.id)).toEqual(stored)
  expect(await findWebhook(root, await seedWorkspace(root), stored.id)).toBeNull()
  const after = { ...stored, events: ['*'], oldSecret: null }
  await replaceWebhook(root, stored, after)
  expect(await findWebhook(root, workspaceId, stored.id)).toEqual({ ...after, version: 2 })
  await expect(replaceWebhook(root, stored, after)).rejects.toMatchObject({ code: 'transient_conflict' })
  expect(await countWebhooks(root, workspaceId)).toBe(1)
  await seedDelivery(root, stored)
  await removeWebhook(root, stored.id)
  expect(await countWebhooks(root, workspaceId)).toBe(0)
})

onBoth('webhooks are listed newest first; active ones by themselves', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const [old, young] = [
    await seedWebhook(root, workspaceId, { createdAt: at - 1 }),
    await seedWebhook(root, workspaceId, { createdAt: at }),
  ]
  expect((await listWebhooks(root, { workspaceId, limit: 1 })).map(({ id }) => id)).toEqual([young.id, old.id])
  expect(await disableWebhook(root, old.id, { reason: 'gone', at })).toBe(true)
  expect(await disableWebhook(root, old.id, { reason: 'failing', at })).toBe(false)
  expect(await findWebhook(root, workspaceId, old.id)).toMatchObject({ status: 'disabled', disabledReason: 'gone' })
  expect((await listActiveWebhooks(root, workspaceId)).map(({ id }) => id)).toEqual([young.id])
  expect((await listActiveWebhooksByIds(root, [old.id, young.id])).map(({ id }) => id)).toEqual([young.id])
  expect(await listActiveWebhooksByIds(root, [])).toEqual([])
})

onBoth('since when a webhook fails is noted once, until something is taken', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const { id } = await seedWebhook(root, workspaceId)
  const since = async () => (await findWebhook(root, workspaceId, id))!.failingSince
  await noteFailing(root, id, at)
  await noteFailing(root, id, at + 5)
  expect(await since()).toBe(at)
  await noteFailing(root, id, null)
  expect(await since()).toBeNull()
})

onBoth(
  'an event is written where an active webhook of the workspace waits for it, and nowhere else',
  async ({ root }) => {
    const [some, all, none, off, elsewhere] = [
      await seedWorkspace(root),
      await seedWorkspace(root),
      await seedWorkspace(root),
      await seedWorkspace(root),
      await seedWorkspace(root),
    ]
    await seedWebhook(root, some, { events: ['run.failed', 'task.created'] })
    await seedWebhook(root, all, { events: ['*'] })
    await seedWebhook(root, off, { status: 'disabled' })
    for (const workspaceId of [some, all, none, off, elsewhere])
      await inTransaction(root, async (tx) => {
        await recordEvent(tx, { type: 'run.failed', workspaceId, subjectId: 'run_1', world })
        await recordEvent(tx, {
          type: 'task.status_changed',
          workspaceId,
          subjectId: 'tsk_1',
          change: { from: 'open', to: 'done' },
          world,
        })
      })
    expect((await eventsOf(root, some)).map(({ type }) => type)).toEqual(['run.failed'])
    const event = expect.objectContaining({ workspaceId: all, createdAt: at, dueAt: at })
    const told = (await eventsOf(root, all)).toSorted((a, b) => (a.type < b.type ? -1 : 1))
    expect(told).toEqual([event, event])
    expect(told[0]).toMatchObject({ type: 'run.failed', subjectId: 'run_1', change: null })
    expect(told[1]).toMatchObject({ subjectId: 'tsk_1', change: { from: 'open', to: 'done' } })
    for (const workspaceId of [none, off, elsewhere]) expect(await eventsOf(root, workspaceId)).toEqual([])
  },
)

onBoth('an event that is undone with its change was never there', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  await seedWebhook(root, workspaceId)
  const undone = inTransaction(root, async (tx) => {
    await recordEvent(tx, { type: 'run.failed', workspaceId, subjectId: 'run_1', world })
    throw new Error('undone')
  })
  await expect(undone).rejects.toThrow('undone')
  expect(await eventsOf(root, workspaceId)).toEqual([])
})

onBoth('an event is claimed by one, and removed by whoever has it', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  await seedWebhook(root, workspaceId)
  await recordEvent(root, { type: 'run.failed', workspaceId, subjectId: 'run_1', world })
  const [event] = await eventsOf(root, workspaceId)
  expect(await claimEvent(root, event!, at + 10)).toBe(true)
  expect(await claimEvent(root, event!, at + 20)).toBe(false)
  expect(await eventsOf(root, workspaceId)).toEqual([])
  expect(await removeEvent(root, event!)).toBe(false)
  expect(await removeEvent(root, { ...event!, dueAt: at + 10 })).toBe(true)
  await recordEvent(root, { type: 'run.failed', workspaceId, subjectId: 'run_2', world })
  expect(await removeOldEvents(root, at + 1)).toBeGreaterThanOrEqual(1)
  expect(await eventsOf(root, workspaceId)).toEqual([])
})

onBoth('a delivery is claimed by one, and noted by whoever has it', async ({ root }) => {
  const webhook = await seedWebhook(root, await seedWorkspace(root))
  const row = await seedDelivery(root, webhook)
  expect(await findDelivery(root, webhook.id, row.id)).toEqual(row)
  const claimed = await claimWebhookDelivery(root, row, { now: at, until: at + 60 })
  expect(claimed).toEqual({ ...row, attempts: 1, dueAt: at + 60, lastAttemptAt: at })
  expect(await claimWebhookDelivery(root, row, { now: at, until: at + 60 })).toBeNull()
  const taken = {
    status: 'succeeded',
    dueAt: null,
    durationMs: 7,
    responseStatus: 200,
    responseBody: 'ok',
    error: null,
  }
  expect(await noteAttempt(root, { ...claimed!, dueAt: at + 59 }, taken as never)).toBe(false)
  expect(await noteAttempt(root, claimed!, taken as never)).toBe(true)
  expect(await findDelivery(root, webhook.id, row.id)).toEqual({ ...claimed, ...taken })
  expect(await noteAttempt(root, claimed!, taken as never)).toBe(false)
})

onBoth('webhooks with something due are found, however much waits for one of them', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const [busy, idle, later, quiet] = [
    await seedWebhook(root, workspaceId),
    await seedWebhook(root, workspaceId),
    await seedWebhook(root, workspaceId),
    await seedWebhook(root, workspaceId),
  ]
  const first = await seedDelivery(root, busy, { dueAt: at - 9 })
  for (let n = 0; n < 20; n++) await seedDelivery(root, busy, { dueAt: at - 5 + (n % 5) })
  await seedDelivery(root, quiet)
  await seedDelivery(root, later, { dueAt: at + 1 })
  await seedDelivery(root, idle, { dueAt: null, status: 'succeeded' })
  const own = new Set<string>([busy.id, idle.id, later.id, quiet.id])
  const found = (await listWebhooksWithDue(root, at)).filter((id) => own.has(id))
  expect(found.toSorted()).toEqual([busy.id, quiet.id].toSorted())
  const due = await listDueOf(root, { webhookId: busy.id, now: at, limit: 3 })
  expect(due.map(({ id }) => id)[0]).toBe(first.id)
  expect(due).toHaveLength(3)
  expect(await countWaiting(root, busy.id, 100)).toBe(21)
  expect(await countWaiting(root, busy.id, 5)).toBe(5)
  await giveUpDeliveries(root, busy.id, 'The webhook was disabled.')
  expect(await countWaiting(root, busy.id, 100)).toBe(0)
  expect(await findDelivery(root, busy.id, first.id)).toMatchObject({ status: 'failed', error: expect.any(String) })
})

onBoth('the newest deliveries that are over are kept, and those that wait', async ({ root }) => {
  const webhook = await seedWebhook(root, await seedWorkspace(root))
  const over = { dueAt: null, status: 'succeeded' } as const
  const ids: string[] = []
  for (let n = 0; n < 6; n++) ids.push((await seedDelivery(root, webhook, { ...over, createdAt: at + n })).id)
  const waiting = await seedDelivery(root, webhook, { createdAt: at - 1 })
  await removeBeyond(root, webhook.id, 3)
  const left = async () => (await listDeliveries(root, { webhookId: webhook.id, limit: 50 })).map(({ id }) => id)
  expect(await left()).toEqual([...ids.slice(3).toReversed(), waiting.id])
  const failed = await seedDelivery(root, webhook, { dueAt: null, status: 'failed', createdAt: at + 9 })
  const onlyFailed = await listDeliveries(root, { webhookId: webhook.id, status: 'failed', limit: 50 })
  expect(onlyFailed).toEqual([failed])
  await removeOldWebhookDeliveries(root, at + 9)
  expect(await left()).toEqual([failed.id])
})

onBoth('nothing of a removed workspace is sent', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const { id } = await seedWebhook(root, workspaceId)
  await recordEvent(root, { type: 'run.failed', workspaceId, subjectId: 'run_1', world })
  expect(await eventsOf(root, workspaceId)).toHaveLength(1)
  await markRemoved(root, (await findWorkspace(root, workspaceId))!, at)
  expect(await eventsOf(root, workspaceId)).toEqual([])
  expect(await listActiveWebhooksByIds(root, [id])).toEqual([])
})
