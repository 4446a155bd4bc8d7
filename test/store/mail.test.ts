import { expect } from 'vitest'
import {
  claimMail,
  countMails,
  findMailSettings,
  insertMail,
  insertMailSettings,
  listDueMail,
  listMails,
  listMailSettings,
  noteMail,
  removeMails,
  removeMailsOf,
  removeOldMails,
  replaceMailSettings,
  scheduleMail,
} from '../../control-plane/resources/mail/store.ts'
import { listDueEvents, recordEvent } from '../../control-plane/resources/webhooks/event-store.ts'
import { findWorkspace, markRemoved } from '../../control-plane/resources/workspaces/store.ts'
import type { Db } from '../../control-plane/db/open.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { onBoth } from '../kit/database.ts'
import { mailRow, seedMailSettings } from './mail-rows.ts'
import { at, seedWorkspace } from './seed.ts'

const dueOf = async (db: Db, { workspaceId }: { workspaceId: string }, now = at) =>
  (await listDueMail(db, { now, limit: 100 })).filter((row) => row.workspaceId === workspaceId)

onBoth('settings of mail come back as they were stored, and are changed by one writer at a time', async ({ root }) => {
  const stored = await seedMailSettings(root, await seedWorkspace(root))
  expect(await findMailSettings(root, stored)).toEqual(stored)
  expect(await listMailSettings(root, stored.workspaceId)).toEqual([stored])
  const none = { ...stored, events: [] }
  await replaceMailSettings(root, stored, none)
  await expect(replaceMailSettings(root, stored, none)).rejects.toMatchObject({ code: 'transient_conflict' })
  expect(await listMailSettings(root, stored.workspaceId)).toEqual([])
  expect(await findMailSettings(root, { ...stored, workspaceId: await seedWorkspace(root) })).toBeNull()
  await expect(insertMailSettings(root, stored)).rejects.toThrow(/unique/i)
})

onBoth('the next mail is claimed by one, and noted by whoever claimed it last', async ({ root }) => {
  const settings = await seedMailSettings(root, await seedWorkspace(root))
  expect(await dueOf(root, settings)).toEqual([])
  await scheduleMail(root, settings, at)
  // What waits already is not put off.
  await scheduleMail(root, settings, at + 10)
  const [due] = await dueOf(root, settings)
  expect(due?.dueAt).toBe(at)
  const claimed = await claimMail(root, due!, at + 60)
  expect(await claimMail(root, due!, at + 60)).toBeNull()
  expect(await dueOf(root, settings)).toEqual([])
  const [again] = await dueOf(root, settings, at + 60)
  const second = await claimMail(root, again!, at + 120)
  expect(await noteMail(root, claimed!, { dueAt: null })).toBe(false)
  expect(await noteMail(root, second!, { dueAt: null, sentAt: at, error: 'no', attempts: 2 })).toBe(true)
  expect(await findMailSettings(root, settings)).toMatchObject({ dueAt: null, sentAt: at, error: 'no', attempts: 2 })
})

onBoth('nothing is due of a removed workspace', async ({ root }) => {
  const settings = await seedMailSettings(root, await seedWorkspace(root), { dueAt: at })
  expect(await dueOf(root, settings)).toHaveLength(1)
  await markRemoved(root, (await findWorkspace(root, settings.workspaceId))!, at)
  expect(await dueOf(root, settings)).toEqual([])
})

onBoth('what waits for a person is told oldest first, and goes as it was sent or is too old', async ({ root }) => {
  const settings = await seedMailSettings(root, await seedWorkspace(root))
  const rows = [3, 1, 2].map((n) => mailRow(settings, { createdAt: at + n }))
  for (const row of rows) await insertMail(root, row)
  const [third, first, second] = rows
  expect(await listMails(root, settings, 10)).toEqual([first, second, third])
  expect(await listMails(root, settings, 1)).toEqual([first])
  expect(await countMails(root, settings)).toBe(3)
  await removeMails(root, [second!.id])
  await removeOldMails(root, at + 2)
  expect(await listMails(root, settings, 10)).toEqual([third])
  await removeMailsOf(root, settings)
  expect(await countMails(root, settings)).toBe(0)
})

onBoth('an event is recorded where somebody wants mail about it', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const world = { ...realWorld, now: () => at }
  const record = (type: 'run.failed' | 'task.created') =>
    recordEvent(root, { type, workspaceId, subjectId: 'x', world })
  await record('run.failed')
  await seedMailSettings(root, workspaceId, { events: ['run.failed'] })
  await record('task.created')
  await record('run.failed')
  const events = (await listDueEvents(root, { now: at, limit: 100 })).filter((each) => each.workspaceId === workspaceId)
  expect(events.map(({ type }) => type)).toEqual(['run.failed'])
})
