import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import { expect, onTestFinished, test } from 'vitest'
import { realWorld } from '../../shared/lib/world.ts'
import { StorageError } from './place.ts'
import { S3Place } from './s3.ts'

const text = 'The same line again and again.\n'.repeat(100)

/** A bucket whose only object has this body, which a proxy may have packed on the way. */
const bucketWith = (body: Buffer, headers: Record<string, string>, status = 200): Promise<S3Place> =>
  bucketThat((_request, answer) => answer.writeHead(status, headers).end(body))

async function bucketThat(answers: RequestListener): Promise<S3Place> {
  const server = createServer(answers)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const location = { kind: 's3', endpoint, bucket: 'b', prefix: 'p', region: 'auto', keyId: 'k', secret: 's' } as const
  return new S3Place(location, { ...realWorld, sleep: () => Promise.resolve() }, { partBytes: 4 })
}

test('an object is opened when it is as long as it is known to be, also when a proxy has packed it', async () => {
  const plain = await bucketWith(Buffer.from(text), { 'content-length': String(text.length) })
  expect(String(await buffer(await plain.open('blb_1', undefined, text.length)))).toBe(text)
  await expect(plain.open('blb_1', undefined, text.length + 1)).rejects.toThrow(StorageError)
  const packed = gzipSync(text)
  const behind = await bucketWith(packed, { 'content-encoding': 'gzip', 'content-length': String(packed.length) })
  expect(String(await buffer(await behind.open('blb_1', undefined, text.length)))).toBe(text)
})

test('a part is opened when the service gives that part, and not another one or the whole', async () => {
  const range = { start: 4, end: 8 }
  const whole = await bucketWith(Buffer.from(text), { 'content-length': String(text.length) })
  await expect(whole.open('blb_1', range, text.length)).rejects.toThrow(/bytes 4 to 7 were asked for/)
  const part = (first: number) =>
    bucketWith(Buffer.from('same'), { 'content-range': `bytes ${first}-${first + 3}/${text.length}` }, 206)
  await expect((await part(0)).open('blb_1', range, text.length)).rejects.toThrow(StorageError)
  expect(String(await buffer(await (await part(4)).open('blb_1', range, text.length)))).toBe('same')
})

/** A service that answers each wish to complete an upload with 200, and with the next of these. */
async function completing(answers: readonly string[]) {
  const asked: string[] = []
  const place = await bucketThat((request, answer) => {
    const query = new URL(request.url!, 'http://localhost').searchParams
    const act = `${request.method} ${[...query.keys()].join(' ')}`
    request.resume().once('end', () => {
      const completed = asked.filter((each) => each === 'POST uploadId').length
      asked.push(act)
      if (act === 'POST uploads')
        return answer.end('<InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>')
      if (act === 'POST uploadId') return answer.end(answers[completed])
      return answer.writeHead(request.method === 'DELETE' ? 204 : 200, { etag: '"e"' }).end()
    })
  })
  const stored = place.put({ id: 'blb_1', beginUpload: () => Promise.resolve() }, pieces())
  return { stored, asked }
}

async function* pieces() {
  yield Buffer.from('some')
  yield Buffer.from('thing')
}

const failed = '<Error><Code>InternalError</Code><Message>Please try again.</Message></Error>'
const done = '<CompleteMultipartUploadResult><ETag>"e"</ETag></CompleteMultipartUploadResult>'

test('an upload whose end is answered 200 with an error in the body is not taken for stored', async () => {
  const { stored, asked } = await completing([failed, failed, failed])
  await expect(stored).rejects.toThrow(/InternalError/)
  expect(asked.at(-1)).toBe('DELETE uploadId')
})

test('an upload whose end failed on the other side is ended by the next try', async () => {
  const { stored, asked } = await completing([failed, done])
  await stored
  expect(asked.filter((act) => act === 'POST uploadId')).toHaveLength(2)
})
