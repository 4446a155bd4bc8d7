import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { hasPostgres } from '../../kit/database.ts'
import { FakeDevice } from '../../kit/fake-device.ts'
import { outcomeOf, TestServer, type Person } from '../../kit/server.ts'
import { startSmtp, type Smtp } from '../../kit/smtp.ts'

// Mail to people: who is told of what, in how many mails, and what becomes of one that is not taken.

const login = { user: 'svc@example.com', pass: 'p@ss/word' }
let smtp: Smtp, server: TestServer, owner: Person, device: FakeDevice | null
beforeAll(async () => {
  smtp = await startSmtp({ login })
  server = await TestServer.start({
    settings: { SVC_SMTP_URL: smtp.url, SVC_MAIL_FROM: 'Agents <svc@example.com>' },
  })
})
afterAll(async () => {
  await server.stop()
  await smtp.stop()
})
beforeEach(async () => {
  owner = await server.addPerson('owner', `m-${server.world.uuid().slice(0, 8)}`)
  device = null
})
afterEach(async () => {
  smtp.refuse(null)
  await device?.disconnect()
})

const call = (path: string, method = 'POST', body?: unknown, { token } = owner) =>
  server.call(path, {
    method,
    token,
    headers: { 'Idempotency-Key': crypto.randomUUID() },
    ...(body !== undefined && { body }),
  })
const ok = async (path: string, method = 'POST', body?: unknown, person = owner) => {
  const reply = await call(path, method, body, person)
  expect(reply.status, JSON.stringify(reply.body)).toBeLessThan(300)
  return reply.body
}
const want = (events: readonly string[], more: object = {}, person = owner) =>
  ok('/mail-settings', 'PATCH', { events, ...more }, person)
const settingsOf = (person = owner) => ok('/mail-settings', 'GET', undefined, person)
/** A moment later, when what happened is told. */
async function later(ms = 16_000): Promise<void> {
  await server.plane.sweeper.runAll()
  server.world.advance(ms)
  await server.plane.sweeper.runAll()
}
const mailsTo = ({ email }: Person) => smtp.taken.filter(({ to }) => to.includes(email))
const subjectsTo = (person: Person) =>
  mailsTo(person).map(({ source }) => /^Subject: (.*(?:\r\n .*)*)/m.exec(source)?.[1]?.replaceAll('\r\n', ''))
const memberBeside = async () => {
  const { slug } = await ok('/workspaces', 'GET')
  return server.addPerson('member', slug)
}
const cancelledRun = async (person = owner, body: object = {}) => {
  const agent = await server.createAgent({ name: 'Builder' }, person.token)
  const id = await server.startRun(agent.id, { prompt: 'Do it.', ...body }, person.token)
  await ok(`/runs/${id}/cancel`, 'POST', {}, person)
  return id
}

describe('a person', () => {
  test('gets none until they choose, and then what is theirs', async () => {
    expect(await settingsOf()).toMatchObject({ isOffered: true, address: owner.email, events: [], about: 'mine' })
    await cancelledRun()
    await later()
    expect(mailsTo(owner)).toEqual([])
    const beside = await memberBeside()
    await want(['run.cancelled'], {}, beside)
    await want(['run.cancelled', 'run.failed'])
    const id = await cancelledRun()
    await later()
    const [mail, ...more] = mailsTo(owner)
    expect(more).toEqual([])
    expect(mail).toMatchObject({ from: 'svc@example.com', to: [owner.email] })
    expect(mail?.source).toContain('From: Agents <svc@example.com>')
    expect(mail?.source).toContain('Auto-Submitted: auto-generated')
    expect(mail?.source).toContain(`svc run get ${id}`)
    expect(subjectsTo(owner)[0]).toMatch(/^\[M \w+\] Run of @builder\S* was cancelled$/)
    expect(mailsTo(beside)).toEqual([])
    expect(await settingsOf()).toMatchObject({ error: null, lastSentAt: expect.any(String) })
  })

  test('gets what is of others where they want all, and only what they see', async () => {
    const beside = await memberBeside()
    await want(['*'], { about: 'all' }, beside)
    const hidden = await ok('/projects', 'POST', { name: 'Hidden', visibility: 'private' })
    await ok('/tasks', 'POST', { title: 'Not for others', projectId: hidden.id })
    await ok('/tasks', 'POST', { title: 'For everybody' })
    await later()
    expect(subjectsTo(beside)).toEqual([expect.stringMatching(/Task \S+ is new: For everybody$/)])
  })

  test('is told of many things in one mail, and then not again for a minute', async () => {
    await want(['task.created'])
    for (let n = 0; n < 23; n++) await ok('/tasks', 'POST', { title: `Task ${n}` })
    await later()
    expect(subjectsTo(owner)).toEqual([expect.stringMatching(/More than 20 things/)])
    expect(mailsTo(owner)[0]?.source).toContain('Task 19')
    expect(mailsTo(owner)[0]?.source).not.toContain('Task 20')
    await ok('/tasks', 'POST', { title: 'One more' })
    await later(30_000)
    expect(mailsTo(owner)).toHaveLength(1)
    await later(31_000)
    expect(subjectsTo(owner)).toEqual([expect.anything(), expect.stringMatching(/4 things/)])
    await later(120_000)
    expect(mailsTo(owner)).toHaveLength(2)
  })

  test('who turns it off gets nothing of what waits', async () => {
    await want(['task.created'])
    await ok('/tasks', 'POST', { title: 'Late' })
    await server.plane.sweeper.runAll()
    await want([])
    await later()
    expect(mailsTo(owner)).toEqual([])
  })

  test('who left the workspace gets nothing of what waits', async () => {
    const beside = await memberBeside()
    await want(['task.created'], { about: 'all' }, beside)
    await ok('/tasks', 'POST', { title: 'Secret plan' })
    await server.plane.sweeper.runAll()
    await ok(`/workspaces/${beside.workspaceId}/leave`, 'POST', {}, beside)
    await later()
    expect(mailsTo(beside)).toEqual([])
    expect(await server.database.root('mails').where({ user_id: beside.uuid })).toEqual([])
  })

  test('whose approval or question it is, is told, with the command that answers', async () => {
    await want(['question.asked', 'run.waiting'])
    device = await FakeDevice.connect(server, { token: owner.token })
    const agent = await server.createAgent({}, owner.token)
    await server.startRun(agent.id, { prompt: 'Ask.' }, owner.token)
    const run = await device.take()
    const body = { prompt: 'Which\nof **both**?\u202e', answerMode: 'free_text' }
    const asked = await server.ok('/questions', { body, token: run.token, headers: { 'idempotency-key': 'q' } })
    await later()
    const source = mailsTo(owner)
      .map((mail) => mail.source)
      .join('')
    expect(source).toContain(`svc question answer ${asked.question?.id ?? asked.id}`)
    expect(source).toContain('> Which\r\n> of **both**?')
  })
})

describe('a mail', () => {
  test('has one subject whatever a title says, and quotes what others wrote', async () => {
    await want(['task.created'])
    await ok('/tasks', 'POST', { title: 'One\r\nBcc: eve@example.com\r\n\r\nHello \u001b[31mred' })
    await later()
    const [mail] = mailsTo(owner)
    expect(mail?.to).toEqual([owner.email])
    expect(mail?.source).not.toMatch(/^Bcc:/im)
    expect(mail?.source).not.toContain('\u001b')
  })

  test('that is not taken now is tried again, and told once', async () => {
    await want(['task.created'])
    await ok('/tasks', 'POST', { title: 'Later' })
    smtp.refuse({ code: 451, message: 'try later' })
    await later()
    expect(await settingsOf()).toMatchObject({ error: expect.stringContaining('log of this server') })
    expect(mailsTo(owner)).toEqual([])
    smtp.refuse(null)
    await later(60_000)
    await later(60_000)
    expect(subjectsTo(owner)).toEqual([expect.stringContaining('Later')])
    expect(await settingsOf()).toMatchObject({ error: null })
  })

  test('that is refused for good is not tried again, and the settings say why', async () => {
    await want(['task.created'])
    await ok('/tasks', 'POST', { title: 'Never' })
    smtp.refuse({ code: 550, message: 'no such mailbox' })
    await later()
    smtp.refuse(null)
    await later(3_600_000)
    expect(mailsTo(owner)).toEqual([])
    expect(await settingsOf()).toMatchObject({ error: expect.stringContaining('550 no such mailbox') })
  })

  test('that nobody takes for a day is dropped', async () => {
    await want(['task.created'])
    await ok('/tasks', 'POST', { title: 'Old' })
    smtp.refuse({ code: 451, message: 'try later' })
    await later()
    await later(25 * 3_600_000)
    smtp.refuse(null)
    await later(3_600_000)
    expect(mailsTo(owner)).toEqual([])
  })

  test('can be asked for, to try it', async () => {
    await ok('/mail-settings/test')
    expect(subjectsTo(owner)).toEqual([expect.stringContaining('svc reaches you by mail')])
    smtp.refuse({ code: 550, message: 'no such mailbox' })
    const reply = await call('/mail-settings/test')
    expect([outcomeOf(reply), reply.body.error.message]).toEqual(['502 mail_not_sent', expect.stringContaining('550')])
  })
})

// On SQLite one process has the database.
describe.skipIf(!hasPostgres())('two replicas', () => {
  test('send a mail once, and a stop waits no longer than a moment for one that hangs', async () => {
    let reached = 0
    const hanging = Promise.withResolvers<void>()
    const slow = await startSmtp({ before: () => (reached++ === 0 ? Promise.resolve() : hanging.promise) })
    const settings = { SVC_SMTP_URL: slow.url, SVC_MAIL_FROM: 'svc@example.com' }
    const one = await TestServer.start({ database: 'postgres', settings })
    const two = await TestServer.start({ beside: one, settings })
    const sweepBoth = () => Promise.all([one, two].map(({ plane }) => plane.sweeper.runAll()))
    const { token } = one.owner
    const add = (title: string) => one.ok('/tasks', { body: { title }, headers: { 'idempotency-key': title }, token })
    await one.ok('/mail-settings', { method: 'PATCH', body: { events: ['task.created'] }, token })
    for (const title of ['a', 'b', 'c']) await add(title)
    await sweepBoth()
    one.world.advance(16_000)
    await sweepBoth()
    expect(slow.taken.map(({ source }) => /^Subject: .*$/m.exec(source)?.[0])).toEqual([
      expect.stringContaining('3 things'),
    ])
    await add('hangs')
    await one.plane.sweeper.runAll()
    one.world.advance(61_000)
    const swept = two.plane.sweeper.runAll()
    await expect.poll(() => reached).toBe(2)
    const began = performance.now()
    await two.stop()
    expect(performance.now() - began).toBeLessThan(20_000)
    await swept
    hanging.resolve()
    // The claim is over, so the other one sends it.
    one.world.advance(61_000)
    await one.plane.sweeper.runAll()
    expect(slow.taken.at(-1)?.source).toContain('hangs')
    await one.stop()
    await slow.stop()
  })
})
