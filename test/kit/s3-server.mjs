import { once } from 'node:events'
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
const { port } = await server.run()
process.stdout.write(`${JSON.stringify({ port })}\n`)
process.stdin.resume()
await once(process.stdin, 'end')
process.exit(0)
