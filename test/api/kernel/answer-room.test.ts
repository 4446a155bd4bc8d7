import { expect, test } from 'vitest'
import { AnswerRoom } from '../../../control-plane/http/answer-room.ts'
import { BodyRoom } from '../../../control-plane/http/body-room.ts'
import { realWorld } from '../../../shared/lib/world.ts'

const mebibyte = 1024 * 1024
const roomOf = () => new BodyRoom(realWorld, { bytes: 8 * mebibyte, waitingPerOwner: 100, waitMs: 60_000 })
function reader(room: BodyRoom, member: string) {
  const gone = new AbortController()
  return { room: new AnswerRoom(room, { group: member, member }, () => gone.signal), leave: () => gone.abort() }
}
const sleep = (ms: number) => realWorld.sleep(ms)

test('one caller has half of the room, and others find theirs meanwhile', async () => {
  const shared = roomOf()
  const mine = Array.from({ length: 4 }, () => reader(shared, 'me'))
  const done: number[] = []
  const held = mine.map(({ room }, at) => room.hold(2 * mebibyte).then(() => done.push(at)))
  await Promise.all(held.slice(0, 2))
  expect(shared.heldBytes).toBe(4 * mebibyte)
  await reader(shared, 'other').room.hold(2 * mebibyte)
  expect([done, shared.heldBytes]).toEqual([[0, 1], 6 * mebibyte])
  // The room of an answer is free when it is sent, or its reader has gone.
  mine[0]!.leave()
  await held[2]
  expect([done, shared.heldBytes]).toEqual([[0, 1, 2], 6 * mebibyte])
  mine[1]!.leave()
  await held[3]
})

test('a small answer takes none, and a reader that has gone waits for nothing', async () => {
  const shared = roomOf()
  const [holding, small, waiting] = [reader(shared, 'me'), reader(shared, 'me'), reader(shared, 'me')]
  await holding.room.hold(4 * mebibyte)
  await small.room.hold(1_000)
  const part = waiting.room.takeFor(2 * mebibyte, sleep)
  waiting.leave()
  expect(await part).toBeNull()
  expect(shared.heldBytes).toBe(4 * mebibyte)
})

test('the parts of a stream take room one after another', async () => {
  const shared = roomOf()
  const { room } = reader(shared, 'me')
  for (let part = 0; part < 10; part++) {
    const release = await room.takeFor(2 * mebibyte, sleep)
    expect(shared.heldBytes).toBe(2 * mebibyte)
    release!()
  }
  expect(shared.heldBytes).toBe(0)
})
