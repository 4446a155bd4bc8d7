import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FakeDevice } from '../../kit/fake-device.ts'
import { outcomeOf, type Person, type TestServer } from '../../kit/server.ts'
import { startFilesServer, upload } from './files-kit.ts'

// Files that messages and comments name.

let server: TestServer
let device: FakeDevice
let member: Person
beforeAll(async () => {
  ;({ server } = await startFilesServer())
  device = await FakeDevice.connect(server)
  member = await server.addPerson('member')
})
afterAll(async () => {
  await device.disconnect()
  await server.stop()
})

const key = () => ({ 'idempotency-key': crypto.randomUUID() })
const newTask = (title: string, more: Record<string, unknown> = {}) =>
  server.ok('/tasks', { body: { title, force: true, ...more }, headers: key() })
const comment = (taskId: string, attachmentIds: string[], token = server.owner.token) =>
  server.call(`/tasks/${taskId}/comments`, { body: { content: 'Look at this.', attachmentIds }, headers: key(), token })
const namesOf = (row: { attachments: { name: string }[] }) => row.attachments.map(({ name }) => name)

describe('attachments', () => {
  it('stand on comments and messages in their order, once, for whoever sees the files', async () => {
    const open = await upload(server, { name: 'open.txt', content: 'Open' })
    const secret = await upload(server, {
      name: 'secret.bin',
      content: new Uint8Array([0, 1, 2]),
      visibility: 'private',
    })
    const task = await newTask('Read the files')
    const reply = await comment(task.id, [secret.id, open.id, open.id])
    expect(outcomeOf(reply)).toBe('201')
    expect(reply.body.attachments).toEqual([
      { id: secret.id, name: 'secret.bin', contentType: 'application/octet-stream', sizeBytes: 3 },
      { id: open.id, name: 'open.txt', contentType: expect.stringMatching(/^text\/plain/), sizeBytes: 4 },
    ])
    const list = async (token: string) => (await server.ok(`/tasks/${task.id}/comments`, { token })).data.at(-1)
    expect(namesOf(await list(server.owner.token))).toEqual(['secret.bin', 'open.txt'])
    expect(namesOf(await list(member.token))).toEqual(['open.txt'])
    const included = async (token: string) =>
      (await server.ok(`/tasks/${task.id}?include[]=comments&include[]=conversation`, { token })) as {
        comments: { id: string; attachments: { name: string }[] }[]
        conversation: { id: string }
      }
    const { comments, conversation } = await included(member.token)
    expect(namesOf(comments.at(-1)!)).toEqual(['open.txt'])
    const seenAs = async (token: string) => {
      const { id } = reply.body
      const messages = await server.ok(`/conversations/${conversation.id}/messages`, { token })
      const around = await server.ok(`/conversations/${conversation.id}/messages?around=${id}`, { token })
      const detail = await server.ok(`/conversations/${conversation.id}?include[]=messages`, { token })
      const one = await server.ok(`/messages/${id}`, { token })
      const rows = [messages.data, around.data, detail.messages].map((all) =>
        all.find((row: { id: string }) => row.id === id),
      )
      return [...rows, one].map(namesOf)
    }
    expect(await seenAs(server.owner.token)).toEqual(Array.from({ length: 4 }, () => ['secret.bin', 'open.txt']))
    expect(await seenAs(member.token)).toEqual(Array.from({ length: 4 }, () => ['open.txt']))
    await server.call(`/files/${open.id}`, { method: 'DELETE', token: server.owner.token })
    expect(await seenAs(member.token)).toEqual(Array.from({ length: 4 }, () => []))
    const removed = await server.ok(`/messages/${reply.body.id}/delete`, { body: {}, headers: key() })
    expect(removed.attachments).toEqual([])
  })

  it('that the sender does not see are unknown to them, and nothing is posted', async () => {
    const secret = await upload(server, { visibility: 'private' })
    const elsewhere = await server.addPerson('owner', 'files-elsewhere')
    const foreign = await upload(server, { token: elsewhere.token })
    const gone = await upload(server, {})
    await server.call(`/files/${gone.id}`, { method: 'DELETE' })
    const task = await newTask('Nothing to read')
    for (const id of [secret.id, foreign.id, gone.id, 'file_0000000000000000'])
      expect([id, outcomeOf(await comment(task.id, [id], member.token))]).toEqual([id, '404 resource_not_found'])
    expect((await server.ok(`/tasks/${task.id}/comments`)).data).toEqual([])
  })

  it('are named in the prompt of an agent that the message wakes, if it sees them', async () => {
    const agent = await server.createAgent({ name: 'Reader', harness: 'claude' })
    const task = await newTask('Read on', { assignee: agent.id })
    await (await device.take()).end('completed')
    const open = await upload(server, { name: 'a "plan".txt', content: 'Plan' })
    const secret = await upload(server, { name: 'secret.txt', visibility: 'private' })
    expect(outcomeOf(await comment(task.id, [open.id, secret.id]))).toBe('201')
    const run = await device.take()
    const { prompt } = run.spec
    expect(prompt).toContain('svc file read')
    expect(prompt).toContain(`- ${open.id} "a \\"plan\\".txt" (text/plain`)
    expect(prompt).not.toContain(secret.id)
    expect(prompt).not.toContain('secret.txt')
    // What it reads there is what the prompt says.
    const read = await server.ok(`/files/${open.id}?expand[]=content`, { token: run.token })
    expect(read.content).toBe('Plan')
    expect(outcomeOf(await server.call(`/files/${secret.id}`, { token: run.token }))).toBe('404 resource_not_found')
    await run.end('completed')
  })
})
