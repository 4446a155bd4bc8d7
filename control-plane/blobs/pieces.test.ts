import { expect, test } from 'vitest'
import { gathered } from './pieces.ts'

async function* sourceOf(sizes: readonly number[]) {
  let next = 0
  for (const size of sizes) yield Uint8Array.from({ length: size }, () => next++ % 251)
}

async function piecesOf(sizes: readonly number[], bytes: number): Promise<Uint8Array[]> {
  const pieces: Uint8Array[] = []
  for await (const piece of gathered(sourceOf(sizes), bytes)) pieces.push(Uint8Array.from(piece))
  return pieces
}

test.each([
  [[], []],
  [[0], []],
  [[10], [10]],
  [
    [3, 0, 3, 3, 3],
    [10, 2],
  ],
  [[35], [10, 10, 10, 5]],
  [
    [4, 20, 6],
    [10, 10, 10],
  ],
])('sources of %j become pieces of %j', async (sizes, expected) => {
  const pieces = await piecesOf(sizes, 10)
  expect(pieces.map(({ length }) => length)).toEqual(expected)
  const all = Buffer.concat(pieces)
  expect([...all]).toEqual(Array.from({ length: all.length }, (_, index) => index % 251))
})
