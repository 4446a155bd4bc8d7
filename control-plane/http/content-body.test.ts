import { idFrom } from '../../shared/lib/ids.ts'
import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { StoredContent } from '../../shared/api/stored-content.ts'
import { mebibyte } from '../../shared/api/route.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { BodyRoom } from './body-room.ts'
import { readContentBody } from './content-body.ts'

test('a body that is there at once is read in many turns of the event loop', async () => {
  const content = Buffer.alloc(3 * mebibyte, 'x').toString('base64')
  const body = Buffer.from(`{"name":"a","content":"${content}"}`)
  const pieces = Array.from({ length: Math.ceil(body.length / 65_536) }, (_, n) =>
    body.subarray(n * 65_536, (n + 1) * 65_536),
  )
  const request = Object.assign(Readable.from(pieces, { objectMode: false }), { headers: {} })
  let turns = 0
  let isRead = false
  const count = () => {
    turns++
    if (!isRead) setImmediate(count)
  }
  setImmediate(count)
  const { content: stored, rest } = await readContentBody(request as unknown as IncomingMessage, {
    key: 'content',
    limit: 8 * mebibyte,
    contentLimit: 8 * mebibyte,
    room: new BodyRoom(realWorld, { bytes: 32 * mebibyte, waitingPerOwner: 1, waitMs: 1_000 }),
    owner: { group: 'a', member: 'a' },
    world: realWorld,
    async store(source) {
      const hash = createHash('sha256')
      let sizeBytes = 0
      for await (const piece of source) {
        hash.update(piece)
        sizeBytes += piece.length
      }
      return new StoredContent({
        blobId: idFrom('blb_1'),
        sha256: hash.digest('hex'),
        sizeBytes,
        head: Buffer.alloc(0),
      })
    },
    discard: () => Promise.resolve(),
  })
  isRead = true
  expect([stored?.sizeBytes, rest.toString()]).toEqual([3 * mebibyte, '{"name":"a","content":0 }'])
  expect(turns).toBeGreaterThanOrEqual(pieces.length - 1)
})
