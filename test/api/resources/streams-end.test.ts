import { afterAll, beforeAll, expect, test } from 'vitest'
import { sessionCookie } from '../../../control-plane/http/auth.ts'
import { hashToken } from '../../../control-plane/http/token-hash.ts'
import { openStream, readStream, type OpenStream } from '../../kit/event-stream.ts'
import { FakeDevice, type FakeRun } from '../../kit/fake-device.ts'
import { makeDm } from '../../kit/talk.ts'
import { openTurn } from '../../kit/turn-stream.ts'
import { TestServer, type Person } from '../../kit/server.ts'
import { insertSession } from '../../../control-plane/sign-in/store.ts'

// Streams of readers who may not read any more: they are cut off, which is no end of what there is to read.

let server: TestServer
let device: FakeDevice
let agentId: string
let run: FakeRun
beforeAll(async () => {
  server = await TestServer.start({ settings: { SVC_STREAM_CHECK_MS: '100' } })
  device = await FakeDevice.connect(server)
  agentId = (await server.createAgent()).id
  await server.startRun(agentId)
  run = await device.take()
})
afterAll(async () => {
  await device.disconnect()
  await server.stop()
})

const root = () => server.database.root
const follow = (headers: Record<string, string>) => openStream(server, `/runs/${run.runId}/events`, headers)
const bearer = ({ token }: { token: string }) => ({ authorization: `Bearer ${token}` })

/** Reads on while the reader may, and is cut off once the reader may not. */
async function cutOffAfter(stream: OpenStream, change: () => Promise<unknown>): Promise<void> {
  await run.events({ kind: 'text', data: { text: 'still read' } })
  await stream.take(1)
  await change()
  await expect(stream.rest()).rejects.toThrow('terminated')
}

const removeMember = (person: Person) =>
  root()('members').where({ user_id: person.uuid, workspace_id: person.workspaceId }).delete()

test('a login token that is revoked', async () => {
  const member = await server.addPerson('member')
  const revoke = async () => {
    const { data } = await server.ok('/auth/tokens', { base: '/api', token: member.token })
    await server.ok(`/auth/tokens/${data[0].id}`, { base: '/api', method: 'DELETE', token: member.token })
  }
  await cutOffAfter(await follow(bearer(member)), revoke)
})

test('a person who left the workspace', async () => {
  const member = await server.addPerson('member')
  await cutOffAfter(await follow(bearer(member)), () => removeMember(member))
})

test('a session that ended', async () => {
  const member = await server.addPerson('member')
  const cookie = `svc_dsh_${'a'.repeat(40)}`
  const at = server.world.now()
  const session = { personUuid: member.uuid, workspaceId: member.workspaceId, tokenHash: hashToken(cookie) }
  await insertSession(root(), { id: 'ses_0000000000000000', ...session, createdAt: at, expiresAt: at + 3_600_000 })
  const stream = await readStream(`${server.nextUrl()}/api/v1/runs/${run.runId}/events`, {
    headers: { accept: 'text/event-stream', cookie: `${sessionCookie}=${cookie}` },
  })
  await cutOffAfter(stream, () =>
    root()('dashboard_sessions').where({ user_id: member.uuid }).update({ revoked_at: at }),
  )
})

test("a run's token after the run, of another run", async () => {
  await server.startRun((await server.createAgent()).id)
  const other = await device.take()
  await cutOffAfter(await follow(bearer(other)), () => other.end())
})

test('a turn of a conversation of whoever is no participant any more', async () => {
  const member = await server.addPerson('member')
  const talker = await server.createAgent({ name: 'Talker' })
  const { id } = await makeDm(server, talker.id, member.token)
  const stream = await openTurn(server, id, { body: 'Hello' }, bearer(member))
  await stream.take(2)
  await removeMember(member)
  await expect(stream.rest()).rejects.toThrow('terminated')
})
