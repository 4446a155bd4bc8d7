import { once } from 'node:events'
import { request, type ClientRequest } from 'node:http'
import { afterEach, expect, test } from 'vitest'
import { z } from 'zod'
import { BodyRoom } from '../../../control-plane/http/body-room.ts'
import { hashToken } from '../../../control-plane/http/token-hash.ts'
import { implement } from '../../../control-plane/http/implement.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import { defineRoute, rawBody } from '../../../shared/api/route.ts'
import { waitFor } from '../../kit/programs.ts'
import { call, refusal, startServer, type TestServer } from './server.ts'

// Bodies of more than 64 KiB take room in memory, which there is only so much of.

const mebibyte = 1024 * 1024
const routes = {
  take: defineRoute({
    id: 'large.take',
    endpoint: 'POST /large',
    summary: 'Takes text',
    idempotency: 'none',
    transaction: false,
    body: z.object({ text: z.string() }),
    reply: z.object({ length: z.number() }),
  }),
  open: defineRoute({
    id: 'large.open',
    endpoint: 'POST /large/open',
    summary: 'Takes bytes of anybody',
    callers: 'none',
    transaction: false,
    bodyLimit: mebibyte,
    body: rawBody,
    reply: z.object({ length: z.number() }),
  }),
}

let server: TestServer | null = null
afterEach(() => server?.close())

async function start() {
  const room = () => new BodyRoom(realWorld, { bytes: 3 * mebibyte, waitingPerOwner: 100, waitMs: 60_000 })
  const rooms = {
    known: room(),
    bundles: room(),
    messages: room(),
    streamed: room(),
    strangers: room(),
    answers: room(),
    downloads: room(),
  }
  const held: (() => void)[] = []
  const state = { isHolding: false }
  const implemented = implement(routes, {
    take: async ({ body }) => {
      if (state.isHolding) await new Promise<void>((resolve) => held.push(resolve))
      return { length: body.text.length }
    },
    open: ({ body }) => Promise.resolve({ length: body.length }),
  })
  server = await startServer({ routes: implemented, rooms })
  return { server, rooms, held, state }
}

/** A request that says how long it is and sends only its beginning. */
async function begin(to: TestServer, path: string, length: number, token = to.seed.ownerToken): Promise<ClientRequest> {
  const sent = request(`${to.url}/api/v1${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      'content-length': length,
    },
  })
  sent.on('error', () => undefined)
  sent.write('{"text":"')
  await once(sent, 'socket')
  return sent
}

const text = (length: number) => ({ text: 'x'.repeat(length) })

test('what is under way at the same time is bounded; who waits is not read, and is answered in the end', async () => {
  const { server: to, rooms, held, state } = await start()
  state.isHolding = true
  const replies = Array.from({ length: 6 }, () => call(to, '/large', { body: text(mebibyte) }))
  await waitFor(() => held.length > 0, 'the first is worked on')
  // The same caller has half of the room at most: one body of this size.
  expect([held.length, rooms.known.heldBytes < 2 * mebibyte]).toEqual([1, true])
  // A small body needs no room.
  state.isHolding = false
  expect((await call(to, '/large', { body: text(1_000) })).body).toEqual({ length: 1_000 })
  held[0]!()
  for (const reply of await Promise.all(replies)) expect(reply.body).toEqual({ length: mebibyte })
  expect(rooms.known.heldBytes).toBe(0)
})

test('the callers of one workspace leave room to another', async () => {
  const { server: to, rooms } = await start()
  const { ownerToken, adminToken, memberToken, agentToken, otherWorkspaceId } = to.seed
  const { root } = to.database
  const login = () => root('login_tokens').where({ token_hash: hashToken(memberToken) })
  const moved = { workspace_id: otherWorkspaceId }
  const { user_id } = (await login().first('user_id')) as { user_id: string }
  await root('members').where({ user_id }).update(moved)
  await login().update(moved)
  const senders: ClientRequest[] = []
  for (const token of [ownerToken, agentToken]) senders.push(await begin(to, '/large', mebibyte, token))
  await waitFor(() => rooms.known.heldBytes === 2 * mebibyte, 'a person and an agent have room')
  const third = call(to, '/large', { body: text(mebibyte), token: adminToken })
  const length = mebibyte - 100
  expect((await call(to, '/large', { body: text(length), token: memberToken })).body).toEqual({ length })
  expect(rooms.known.heldBytes).toBe(2 * mebibyte)
  for (const sender of senders) sender.destroy()
  expect((await third).body).toEqual({ length: mebibyte })
})

test('a sender that is cut off gives its room back, while it is read and while it waits', async () => {
  const { server: to, rooms } = await start()
  const senders: ClientRequest[] = []
  for (let count = 0; count < 4; count++) senders.push(await begin(to, '/large', mebibyte))
  await waitFor(() => rooms.known.heldBytes === mebibyte, 'one has room, the others wait')
  // Those that wait leave first, then the one that is read.
  for (const sender of senders.toReversed()) sender.destroy()
  await waitFor(() => rooms.known.heldBytes === 0, 'the room is given back')
  expect((await call(to, '/large', { body: text(mebibyte) })).body).toEqual({ length: mebibyte })
  expect(rooms.known.heldBytes).toBe(0)
})

test('whatever a body is refused for, its room is given back', async () => {
  const { server: to, rooms } = await start()
  const bad = [`{"text":${'['.repeat(100_000)}`, JSON.stringify({ other: 'x'.repeat(100_000) }), 'x'.repeat(100_000)]
  for (const raw of bad) expect(await refusal(to, '/large', { raw })).toEqual([400, 'validation_error'])
  expect(await refusal(to, '/large', { raw: 'x'.repeat(3 * mebibyte) })).toEqual([413, 'payload_too_large'])
  expect(rooms.known.heldBytes).toBe(0)
})

test('more values than a server can look through in a moment are refused before they are parsed', async () => {
  const { server: to } = await start()
  const many = `{"text":"x","more":[${'1,'.repeat(60_000)}1]}`
  expect(await refusal(to, '/large', { raw: many })).toEqual([413, 'payload_too_large'])
  const few = `{"text":"${',[{'.repeat(60_000)}","more":[${'1,'.repeat(40_000)}1]}`
  expect((await call(to, '/large', { raw: few })).status).toBe(200)
})

test('strangers have room of their own', async () => {
  const { server: to, rooms } = await start()
  const stranger = await begin(to, '/large/open', mebibyte)
  await waitFor(() => rooms.strangers.heldBytes === mebibyte, 'it is read')
  expect(rooms.known.heldBytes).toBe(0)
  expect((await call(to, '/large', { body: text(mebibyte) })).status).toBe(200)
  stranger.destroy()
  await waitFor(() => rooms.strangers.heldBytes === 0, 'the room is given back')
})
