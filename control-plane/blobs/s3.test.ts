import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import { expect, onTestFinished, test } from 'vitest'
import { realWorld } from '../../shared/lib/world.ts'
import { StorageError } from './place.ts'
import { S3Place } from './s3.ts'

const text = 'The same line again and again.\n'.repeat(100)

/** A bucket whose only object has this body, which a proxy may have packed on the way. */
async function bucketWith(body: Buffer, headers: Record<string, string>): Promise<S3Place> {
  const server = createServer((_request, answer) => answer.writeHead(200, headers).end(body))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const location = { kind: 's3', endpoint, bucket: 'b', prefix: 'p', region: 'auto', keyId: 'k', secret: 's' } as const
  return new S3Place(location, realWorld)
}

test('an object is opened when it is as long as it is known to be, also when a proxy has packed it', async () => {
  const plain = await bucketWith(Buffer.from(text), { 'content-length': String(text.length) })
  expect(String(await buffer(await plain.open('blb_1', undefined, text.length)))).toBe(text)
  await expect(plain.open('blb_1', undefined, text.length + 1)).rejects.toThrow(StorageError)
  const packed = gzipSync(text)
  const behind = await bucketWith(packed, { 'content-encoding': 'gzip', 'content-length': String(packed.length) })
  expect(String(await buffer(await behind.open('blb_1', undefined, text.length)))).toBe(text)
})
