import { createHash, randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'

/**
 * The bare peer of uploads and downloads. It takes the same body as the server does, of which it knows where the content
 * stands: decodes the base64, hashes it, writes it to a file and syncs that. Argument: its folder.
 */
const folder = process.argv[2]
const begins = Buffer.from('"contentBase64":"')

const server = createServer((request, response) => {
  const done = request.method === 'POST' ? upload(request, response) : download(request, response)
  done.catch((error) => response.writeHead(500).end(String(error)))
})

async function upload(request, response) {
  const path = join(folder, randomUUID())
  const file = await open(path, 'w')
  const hash = createHash('sha256')
  let isContent = false
  let left = ''
  for await (const chunk of request) {
    const at = isContent ? 0 : chunk.indexOf(begins) + begins.length
    isContent = true
    const text = left + chunk.toString('latin1', at)
    const end = text.indexOf('"')
    const whole = end === -1 ? text.length - (text.length % 4) : end
    left = text.slice(whole)
    const bytes = Buffer.from(text.slice(0, whole), 'base64')
    hash.update(bytes)
    await file.write(bytes)
    if (end !== -1) break
  }
  await file.sync()
  await file.close()
  response.end(JSON.stringify({ path, sha256: hash.digest('hex') }))
}

async function download(request, response) {
  await pipeline(createReadStream(decodeURIComponent(request.url.slice(1))), response)
}

server.listen(0, '127.0.0.1', () => process.stdout.write(`${JSON.stringify({ port: server.address().port })}\n`))
process.stdin.resume().once('end', () => process.exit(0))
