import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/** A bucket on a server of S3 that checks signatures. */
export interface S3Bucket {
  /** As `SVC_FILES_URL` takes it. */
  readonly url: string
  readonly environment: { AWS_ACCESS_KEY_ID: string; AWS_SECRET_ACCESS_KEY: string }
  /** What the server keeps of the bucket lies here. */
  readonly folder: string
  /** Keys of the objects in the bucket, and files of uploads that were begun and not completed. */
  keys(): string[]
  /** Another bucket of the same server, with what is in this one now; closing it removes it. */
  copy(): S3Bucket
  /** Whether the server is at a request. */
  isBusy(): boolean
  /** What happens to requests to the server from now on: null answers them. */
  fault(fault: ((request: IncomingMessage) => Fault | null) | null): void
  close(): Promise<void>
}

/**
 * A status that the service answers with, or the connection is cut in the middle of the request's body, or the service does
 * what it is asked, this is called, and then its answer is lost.
 */
export type Fault = number | 'cut' | (() => Promise<void>)

const name = 'svc-files'

export async function startS3(folder: string): Promise<S3Bucket> {
  const program = join(import.meta.dirname, 's3-server.mjs')
  const child = spawn(process.execPath, [program, folder, name], { stdio: ['pipe', 'pipe', 'inherit'] })
  const port = await portOf(child)
  let fault: ((request: IncomingMessage) => Fault | null) | null = null
  let copies = 0
  const uploadsOf = ({ url = '' }: IncomingMessage) => join(folder, url.split(/[/?]/)[1]!, '._S3rver_uploads')
  let underWay = 0
  const proxy = createServer((incoming, answer) => {
    const happens = fault?.(incoming) ?? null
    underWay++
    answer.once('close', () => underWay--)
    if (happens === null || typeof happens === 'function')
      return pass(incoming, answer, { port, uploads: uploadsOf(incoming), lose: happens })
    if (happens === 'cut') {
      // A message that is whole does not take its socket along.
      const cut = () => void incoming.socket.destroy()
      return void incoming.once('data', cut).once('end', cut)
    }
    incoming.resume().once('end', () => answer.writeHead(happens, { 'content-type': 'application/xml' }).end(slowDown))
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  const endpoint = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
  const bucketOf = (bucket: string, close: () => Promise<void> | void): S3Bucket => ({
    url: `s3://${bucket}/test?endpoint=${encodeURIComponent(endpoint)}`,
    environment: { AWS_ACCESS_KEY_ID: 'S3RVER', AWS_SECRET_ACCESS_KEY: 'S3RVER' },
    folder: join(folder, bucket),
    keys: () => keysIn(join(folder, bucket)),
    copy() {
      const copied = `${name}-${++copies}`
      cpSync(join(folder, bucket), join(folder, copied), { recursive: true })
      return bucketOf(copied, () => rmSync(join(folder, copied), { recursive: true }))
    },
    isBusy: () => underWay > 0,
    fault: (next) => void (fault = next),
    close: async () => close(),
  })
  return bucketOf(name, async () => {
    proxy.closeAllConnections()
    proxy.close()
    child.stdin.end()
    if (child.exitCode === null) await once(child, 'exit')
  })
}

const slowDown = '<?xml version="1.0"?><Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>'

async function portOf(child: ChildProcess): Promise<number> {
  const [line] = (await once(createInterface(child.stdout!), 'line')) as [string]
  return (JSON.parse(line) as { port: number }).port
}

/** The server checks who lists uploads or gives one up, and then says that it cannot do it: it is done here. */
function pass(
  incoming: IncomingMessage,
  answer: ServerResponse,
  { port, uploads, lose }: { port: number; uploads: string; lose: (() => Promise<void>) | null },
) {
  const { method, url = '', headers } = incoming
  const onward = request({ host: '127.0.0.1', port, method, path: url, headers }, (reply) => {
    if (lose !== null) {
      reply.resume()
      return void lose().finally(() => answer.destroy())
    }
    const upload = new URL(url, 'http://localhost').searchParams.get('uploadId')
    if (method === 'DELETE' && upload !== null && reply.statusCode === 405) {
      reply.resume()
      const isThere = /^[0-9a-f]+$/.test(upload) && existsSync(join(uploads, upload))
      if (isThere) rmSync(join(uploads, upload), { recursive: true })
      return answer.writeHead(isThere ? 204 : 404).end()
    }
    const query = new URL(url, 'http://localhost').searchParams
    if (method === 'GET' && query.has('uploads') && reply.statusCode === 501) {
      reply.resume()
      return answer
        .writeHead(200, { 'content-type': 'application/xml' })
        .end(listOf(uploads, query.get('prefix') ?? ''))
    }
    answer.writeHead(reply.statusCode!, reply.headers)
    return reply.pipe(answer)
  })
  onward.on('error', () => answer.destroy())
  incoming.pipe(onward)
}

function listOf(uploads: string, prefix: string): string {
  const all = existsSync(uploads) ? readdirSync(uploads) : []
  const shown = all
    .map((id) => ({ id, key: readFileSync(join(uploads, id, 'key'), 'utf8') }))
    .filter(({ key }) => key.startsWith(prefix))
    .map(({ id, key }) => `<Upload><Key>${key}</Key><UploadId>${id}</UploadId></Upload>`)
  return `<?xml version="1.0"?><ListMultipartUploadsResult><IsTruncated>false</IsTruncated>${shown.join('')}</ListMultipartUploadsResult>`
}

/**
 * The server keeps an object as a file of that name with a suffix, and an upload in a folder of its own, where `key` and
 * `metadata` say that it was begun and all else are parts. One is told by its `key`.
 */
function keysIn(folder: string): string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .filter((path) => !/(\.md5|_S3rver_metadata\.json|_S3rver_uploads\/[^/]+\/metadata)$/.test(path))
    .map((path) => path.replace(/\._S3rver_object$/, ''))
}
