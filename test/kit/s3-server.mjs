import { AsyncLocalStorage } from 'node:async_hooks'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import S3rver from '@20minutes/s3rver'

/** A server of S3 that checks signatures, in a process of its own. Arguments: its folder and a bucket. Ends with its stdin. */
const [directory, bucket] = process.argv.slice(2)
const server = new S3rver({
  directory,
  address: '127.0.0.1',
  port: 0,
  silent: true,
  configureBuckets: [{ name: bucket, configs: [] }],
})

// Clients sign `/bucket/` as they send it; the server forgets the slash when it checks what they signed.
const path = new AsyncLocalStorage()
server.middleware.unshift((context, next) => path.run(context.path, next))
const signatures = createRequire(import.meta.url)('@20minutes/s3rver/lib/signature/v4.js')
const { getStringToSign } = signatures
signatures.getStringToSign = (request, signed) =>
  getStringToSign(path.getStore() === `${request.uri}/` ? { ...request, uri: `${request.uri}/` } : request, signed)

const { port } = await server.run()
process.stdout.write(`${JSON.stringify({ port })}\n`)
process.stdin.resume()
await once(process.stdin, 'end')
process.exit(0)
