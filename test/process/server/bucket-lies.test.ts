import { createServer } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { TestServer } from '../../kit/server.ts'
import { upload } from '../../api/resources/files-kit.ts'

// A bucket that gives other bytes than it was given, and does not say how many they are.

const content = 'what was stored'

/** A service with one object, whose bytes it gives as `change` makes them. */
async function startLiar(change: (stored: Buffer) => Buffer): Promise<{ url: string }> {
  const objects = new Map<string, Buffer>()
  const server = createServer((request, answer) => {
    const key = new URL(request.url!, 'http://localhost').pathname
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.once('end', () => {
      if (request.method === 'PUT') objects.set(key, Buffer.concat(chunks))
      const stored = objects.get(key)
      if (stored === undefined) return answer.writeHead(404).end()
      if (request.method !== 'GET') return answer.writeHead(200, { etag: '"e"' }).end()
      // In two pieces, so that no length is told.
      const given = change(stored)
      answer.writeHead(200).write(given.subarray(0, 4))
      return answer.end(given.subarray(4))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { url: `s3://liar?endpoint=${encodeURIComponent(endpoint)}` }
}

/** All that comes over one connection that is asked for a path and then for the health of the server. */
function answersTo(origin: string, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(origin).port), '127.0.0.1')
    let text = ''
    socket.setEncoding('utf8')
    socket.on('data', (chunk: string) => (text += chunk))
    socket.on('error', reject)
    socket.on('close', () => resolve(text))
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
  })
}

test.each([
  ['fewer', (stored: Buffer) => stored.subarray(0, 7)],
  ['more', (stored: Buffer) => Buffer.concat([stored, Buffer.from(' and more')])],
])('a download ends its connection where the bucket gives %s bytes than were stored', async (_, change) => {
  const { url } = await startLiar(change)
  const keys = { AWS_ACCESS_KEY_ID: 'k', AWS_SECRET_ACCESS_KEY: 's' }
  const server = await TestServer.start({ settings: { SVC_FILES_URL: url, ...keys } })
  onTestFinished(() => server.stop())
  const file = await upload(server, { content })
  const { url: signed } = await server.ok(`/files/${file.id}/download`)
  const { pathname, search } = new URL(signed)
  const answers = await answersTo(server.url, pathname + search)
  // What the server answers next is no part of the file, and nothing of the file is part of what it answers next.
  expect(answers).not.toContain('{"status":"ok"}')
  expect(answers).not.toContain('and more')
})
