import { expect } from 'vitest'
import type { Knex } from 'knex'
import { mintRunToken, runTokenMs } from '../../control-plane/http/run-token.ts'
import {
  changeRunTokenKey,
  runTokenKeysSweep,
  spreadMs,
  StoredRunTokenKeys,
} from '../../control-plane/http/run-token-keys.ts'
import { createRunTokenReader } from '../../control-plane/http/run-token-reader.ts'
import { findServerKeyWithTime, moveServerKey, serverKey } from '../../control-plane/db/server-keys.ts'
import { rotateRunTokens } from '../../control-plane/operator/keys.ts'
import { idFrom, type AgentRef, type RunId, type WorkspaceUuid } from '../../shared/lib/ids.ts'
import { realWorld, type World } from '../../shared/lib/world.ts'
import { onBoth } from '../kit/database.ts'
import { at } from './seed.ts'

const hour = 3_600_000
const subject = {
  runId: idFrom<RunId>('run_0123456789abcdef'),
  fence: 1,
  agentRef: idFrom<AgentRef>('agt_0123456789abcdef'),
  workspaceId: idFrom<WorkspaceUuid>('00000000-0000-4000-8000-000000000001'),
  tokenGeneration: 1,
}

/** A clock that a test moves. */
function movedWorld(): World & { ms: number } {
  const world = { ...realWorld, ms: at, now: () => world.ms, monotonic: () => world.ms }
  return world
}

async function replica(root: Knex, world: World) {
  const keys = await StoredRunTokenKeys.read(root, world)
  const read = createRunTokenReader({ runTokenKeys: keys, world })
  return { keys, read, mint: () => mintRunToken(keys.present, subject, world.now()) }
}

onBoth('tokens of before and after a change of the key are good on all replicas', async ({ root }) => {
  const world = movedWorld()
  const [one, other] = [await replica(root, world), await replica(root, world)]
  const before = one.mint()
  world.ms += hour
  await rotateRunTokens(root, world)
  // One that was started since, and one that has not heard of the change yet.
  const fresh = await replica(root, world)
  const after = fresh.mint()
  expect(Buffer.from(fresh.keys.present).equals(Buffer.from(one.keys.present))).toBe(false)
  for (const each of [one, other, fresh])
    for (const token of [before, after]) expect(await each.read(token)).toEqual(subject)
  // It signs with the key before until it has the new one.
  const late = (await replica(root, world)).mint()
  expect(await fresh.read(late)).toEqual(subject)
})

onBoth('a replica signs with the new key after its next sweep', async ({ root }) => {
  const world = movedWorld()
  const one = await replica(root, world)
  const old = one.keys.present
  await changeRunTokenKey(root, world)
  expect(one.keys.present).toBe(old)
  world.ms += 60_000
  await runTokenKeysSweep(one.keys).run()
  expect(one.keys.present).not.toEqual(old)
  expect(one.keys.known).toHaveLength(2)
})

onBoth('the key before ends when its last token has, and can be changed again then', async ({ root }) => {
  const world = movedWorld()
  const one = await replica(root, world)
  const old = one.keys.present
  expect(await rotateRunTokens(root, world)).toEqual({
    oldKeyEndsAt: new Date(at + runTokenMs + spreadMs).toISOString(),
  })
  await expect(rotateRunTokens(root, world)).rejects.toThrow('less than 25 hours ago')
  world.ms += runTokenMs + spreadMs
  await one.keys.refresh()
  expect(one.keys.known).toHaveLength(1)
  // Somebody who has it signs nothing any more.
  expect(await one.read(mintRunToken(old, subject, world.now()))).toBeNull()
  expect(await changeRunTokenKey(root, world)).toBe(world.ms + runTokenMs + spreadMs)
})

onBoth('a token that no key signed has the keys read anew once a second at most', async ({ root }) => {
  const world = movedWorld()
  const one = await replica(root, world)
  let asked = 0
  root.on('query', ({ sql }: { sql: string }) => void (/server_keys/.test(sql) && asked++))
  const forged = mintRunToken(Buffer.alloc(32), subject, world.now())
  world.ms += 2_000
  for (let n = 0; n < 50; n++) expect(await one.read(forged)).toBeNull()
  expect(asked).toBeLessThanOrEqual(4)
  root.removeAllListeners('query')
})

onBoth('a key of the server gets another name in place of the one that had it', async ({ root }) => {
  await serverKey(root, 'a', { value: '1', at })
  await serverKey(root, 'b', { value: '2', at })
  await moveServerKey(root, 'a', { to: 'b', at: at + 1 })
  expect(await findServerKeyWithTime(root, 'a')).toBeNull()
  expect(await findServerKeyWithTime(root, 'b')).toEqual({ value: '1', at: at + 1 })
})
