import { expect, test } from 'vitest'
import { realWorld, type World } from '../../shared/lib/world.ts'
import { BodyRoom, type RoomLimits } from './body-room.ts'

const mebibyte = 1024 * 1024
const limits = { bytes: 100, waitingPerOwner: 3, waitMs: 1_000 }
const never = new AbortController().signal
/** `acme/ann` is Ann of the group `acme`; who has no group is one. */
const owner = (member: string) => ({ group: member.split('/')[0]!, member })

/** Timers go off when a test says so. */
function startRoom(of: RoomLimits = limits) {
  const timers = new Set<() => void>()
  const after: World['after'] = (_ms, run) => {
    timers.add(run)
    return () => void timers.delete(run)
  }
  const room = new BodyRoom({ ...realWorld, after }, of)
  const begun: string[] = []
  const take = (name: string, bytes: number, member = name, gone = never) =>
    room.take(bytes, owner(member), gone).then(
      (release) => {
        begun.push(name)
        return release
      },
      (error: { code: string }) => error.code,
    )
  const settle = () => new Promise((resolve) => setImmediate(resolve))
  return { room, begun, take, settle, timers }
}

test('what finds no room waits, and those that came later wait behind it', async () => {
  const { room, begun, take, settle } = startRoom()
  const first = await take('a', 60)
  const waiting = [take('b', 50), take('c', 10)]
  await settle()
  expect([begun, room.heldBytes]).toEqual([['a'], 60])
  if (typeof first === 'string') throw new Error(first)
  first()
  first()
  for (const release of await Promise.all(waiting)) if (typeof release !== 'string') release()
  expect([begun, room.heldBytes]).toEqual([['a', 'b', 'c'], 0])
})

test('nobody has more than half of it, but for one body that is larger', async () => {
  const { begun, take, settle } = startRoom()
  const first = await take('a', 30)
  void take('a again', 30, 'a')
  await take('b', 30)
  await settle()
  expect(begun).toEqual(['a', 'b'])
  if (typeof first !== 'string') first()
  await settle()
  expect(begun).toEqual(['a', 'b', 'a again'])
  const alone = startRoom()
  await alone.take('huge', 500)
  expect(alone.begun).toEqual(['huge'])
})

test('a group never has all of it, however many members it has and whether or not others wait', async () => {
  const { room, begun, take, settle } = startRoom()
  const first = await take('acme/ann', 40)
  await take('acme/bob', 30)
  // The next of the group waits, and so do those of the group that are behind it; others find room.
  void take('acme/cat', 20)
  void take('acme/dan', 5)
  await take('other', 30)
  await settle()
  expect([begun, room.heldBytes]).toEqual([['acme/ann', 'acme/bob', 'other'], 100])
  if (typeof first !== 'string') first()
  await settle()
  expect(begun.slice(3)).toEqual(['acme/cat', 'acme/dan'])
  const alone = startRoom()
  await alone.take('acme/ann', 90)
  expect(alone.begun).toEqual(['acme/ann'])
})

test('who leaves, or waits too long, or asks too often, has no place in the line', async () => {
  const { room, begun, take, settle, timers } = startRoom()
  const first = await take('a', 100)
  const gone = new AbortController()
  const left = take('b', 50, 'b', gone.signal)
  gone.abort()
  expect(await left).toBe('rate_limit_exceeded')
  expect(await take('b', 50, 'b', gone.signal)).toBe('rate_limit_exceeded')
  const late = [take('c', 50), take('c', 50), take('c', 50), take('c', 50)]
  expect(await late[3]).toBe('rate_limit_exceeded')
  for (const goOff of timers) goOff()
  expect(await Promise.all(late)).toEqual(Array(4).fill('rate_limit_exceeded'))
  if (typeof first !== 'string') first()
  await settle()
  expect([begun, room.heldBytes, timers.size]).toEqual([['a'], 0, 0])
})

test('a room with places has so many bodies over 1 MiB at most, two of one owner and three of one group', async () => {
  const { room, begun, take, settle } = startRoom({ ...limits, bytes: 48 * mebibyte, places: 4, waitingPerOwner: 9 })
  const large = 1.5 * mebibyte
  const first = await take('acme/ann 1', large, 'acme/ann')
  for (const name of ['acme/ann 2', 'acme/ann 3', 'acme/bob 1', 'acme/cid 1', 'other/dan 1', 'other/dan 2'])
    void take(name, large, name.split(' ')[0])
  await settle()
  const four = ['acme/ann 1', 'acme/ann 2', 'acme/bob 1', 'other/dan 1']
  expect([begun.toSorted(), room.heldBytes]).toEqual([four, 48 * mebibyte])
  if (typeof first !== 'string') first()
  await settle()
  expect(begun).toHaveLength(5)
  expect(room.heldBytes).toBe(48 * mebibyte)
})

test('smaller ones take of such a room what they have', async () => {
  const { room, take } = startRoom({ ...limits, bytes: 48 * mebibyte, places: 4 })
  await Promise.all(['a', 'b', 'c', 'd', 'e', 'f'].map((name) => take(name, mebibyte)))
  expect(room.heldBytes).toBe(6 * mebibyte)
})
