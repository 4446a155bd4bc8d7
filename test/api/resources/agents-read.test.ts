import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startWithPeople } from '../../kit/people.ts'
import { agentUuid, setDeleted } from '../../kit/rows.ts'
import { outcomeOf, type Person, type TestServer } from '../../kit/server.ts'

// Tests which agents are found, by what reference, and by whom.

let server: TestServer, admin: Person, member: Person, other: Person
beforeAll(async () => {
  ;({ server, admin, member, other } = await startWithPeople())
})
afterAll(() => server.stop())

const patch = (id: string, body: unknown, token?: string) =>
  server.call(`/agents/${id}`, { method: 'PATCH', body, ...(token === undefined ? {} : { token }) })

describe('read', () => {
  test('by id, UUID, handle, bare handle and name', async () => {
    const agent = await server.createAgent({ name: 'Reader One' })
    const uuid = await agentUuid(server, agent.id)
    for (const reference of [agent.id, uuid, uuid.toUpperCase(), '@reader-one', 'reader-one', 'Reader%20One'])
      expect((await server.ok(`/agents/${reference}`)).id).toBe(agent.id)
    expect(outcomeOf(await server.call('/agents/@nobody'))).toBe('404 resource_not_found')
    expect(outcomeOf(await server.call('/agents/agt_0000000000000000'))).toBe('404 resource_not_found')
  })

  test('`me` is the calling agent, and nobody for a person', async () => {
    const { agent, token } = await server.agentCaller()
    expect((await server.ok('/agents/me', { token })).id).toBe(agent.id)
    expect(outcomeOf(await server.call('/agents/me'))).toBe('404 resource_not_found')
  })

  test('a private agent is seen by its owner, by admins and by itself', async () => {
    const agent = await server.createAgent({ name: 'Secretive', visibility: 'private' }, member.token)
    const runId = (await server.ok(`/agents/${agent.id}/runs`, { body: {}, token: member.token })).runPublicId
    const own = await server.runToken(runId)
    const { token: stranger } = await server.agentCaller()
    for (const token of [member.token, admin.token, own]) {
      expect((await server.ok(`/agents/${agent.id}`, { token })).id).toBe(agent.id)
      expect((await server.ok('/agents?q=secretive', { token })).data).toHaveLength(1)
    }
    for (const token of [other.token, stranger]) {
      expect(outcomeOf(await server.call(`/agents/${agent.id}`, { token }))).toBe('404 resource_not_found')
      expect((await server.ok('/agents?q=secretive', { token })).data).toEqual([])
      expect((await server.ok(`/agents?ids=${agent.id}`, { token })).data).toEqual([null])
      expect(outcomeOf(await server.call(`/agents/${agent.id}/runs`, { body: {}, token }))).toBe(
        '404 resource_not_found',
      )
      expect(outcomeOf(await server.call(`/agents/${agent.id}/config`, { token }))).toBe('404 resource_not_found')
    }
  })

  test('an agent of another workspace does not exist', async () => {
    const foreign = await server.addPerson('owner', 'elsewhere')
    const agent = await server.createAgent({ name: 'Foreign' }, foreign.token)
    expect(outcomeOf(await server.call(`/agents/${agent.id}`))).toBe('404 resource_not_found')
    expect((await server.ok(`/agents?ids=${agent.id}`)).data).toEqual([null])
    expect(outcomeOf(await patch(agent.id, { name: 'Mine' }))).toBe('404 resource_not_found')
  })
})

describe('list', () => {
  test('pages newest first through cursors, by both names of the cursor', async () => {
    const role = crypto.randomUUID()
    const ids: string[] = []
    for (let n = 0; n < 5; n++) ids.unshift((await server.createAgent({ role })).id)
    const first = await server.ok(`/agents?role=${role}&limit=2`)
    expect(first).toMatchObject({ object: 'list', hasMore: true, cursor: first.nextCursor })
    const second = await server.ok(`/agents?role=${role}&limit=2&after=${first.cursor}`)
    const third = await server.ok(`/agents?role=${role}&limit=2&cursor=${second.cursor}`)
    const seen = [first, second, third].flatMap((page) => page.data.map((agent: { id: string }) => agent.id))
    expect(seen).toEqual(ids)
    expect(third).toMatchObject({ hasMore: false, nextCursor: null })
    expect(outcomeOf(await server.call('/agents?after=nonsense'))).toBe('400 invalid_cursor')
    expect(outcomeOf(await server.call('/agents?limit=101'))).toBe('400 validation_error')
    expect(outcomeOf(await server.call(`/agents?q=${'x'.repeat(101)}`))).toBe('400 validation_error')
  })

  test('filters by status, role and text, in which % and _ are letters', async () => {
    const role = crypto.randomUUID()
    const busy = await server.createAgent({ role, name: 'Hundred%Agent', description: 'Knows SQL' })
    await server.createAgent({ role, name: 'HundredXAgent' })
    await patch(busy.id, { status: 'running' })
    const found = async (query: string) => (await server.ok(`/agents?role=${role}&${query}`)).data.length as number
    expect(await found('status=running')).toBe(1)
    expect(await found('status=running,active')).toBe(2)
    expect(await found('status=idle')).toBe(0)
    expect(await found('q=hundred%25a')).toBe(1)
    expect(await found('q=knows%20sql')).toBe(1)
    expect(outcomeOf(await server.call('/agents?status=asleep'))).toBe('400 validation_error')
  })

  test('deleted agents are listed for people only', async () => {
    const agent = await server.createAgent({ name: 'Gone Soon' })
    const { token } = await server.agentCaller()
    await setDeleted(server, agent.id, server.world.now())
    const listed = async (query: string) =>
      (await server.ok(`/agents?q=gone%20soon${query}`)).data.map((row: { id: string }) => row.id)
    expect(await listed('')).toEqual([])
    expect(await listed('&status=deleted')).toEqual([agent.id])
    expect((await server.ok(`/agents/${agent.id}`)).deletedAt).not.toBeNull()
    expect(outcomeOf(await server.call('/agents?status=deleted', { token }))).toBe('403 list_deleted_forbidden')
    expect(outcomeOf(await server.call(`/agents/${agent.id}`, { token }))).toBe('404 resource_not_found')
    expect((await server.ok(`/agents?ids=${agent.id}`, { token })).data).toEqual([null])
    expect(outcomeOf(await patch(agent.id, { name: 'Back' }))).toBe('404 resource_not_found')
  })

  test('reads several by any reference, one slot each', async () => {
    const a = await server.createAgent({ name: 'Batch A' })
    const b = await server.createAgent({ name: 'Batch B' })
    const reply = await server.ok(`/agents?ids=${b.id},nobody,@batch-a,${b.id}`)
    expect(reply.data.map((slot: { id: string } | null) => slot?.id ?? null)).toEqual([b.id, null, a.id, b.id])
    expect(reply).not.toHaveProperty('nextCursor')
    expect(outcomeOf(await server.call(`/agents?ids=${a.id}&limit=5`))).toBe('400 ids_exclusive')
    const many = Array.from({ length: 101 }, () => a.id).join(',')
    expect(outcomeOf(await server.call(`/agents?ids=${many}`))).toBe('400 too_many_ids')
  })
})
