import { Readable } from 'node:stream'
import type { S3mini } from 's3mini'
import type { World } from '../../shared/lib/world.ts'
import {
  BlobMissingError,
  StorageError,
  wrongSize,
  type BlobPlace,
  type ByteRange,
  type GoneBlob,
  type NewBlob,
} from './place.ts'
import { gathered } from './pieces.ts'
import { ByteSender } from './s3-sender.ts'
import { uploadsIn } from './s3-uploads.ts'

export interface S3Location {
  kind: 's3'
  /** The address without a slash at its end. */
  endpoint: string
  bucket: string
  /** Before each key, without slashes at its ends; empty: none. */
  prefix: string
  region: string
  keyId: string
  secret: string
}

/**
 * Blobs in a bucket: `<prefix>/<mark>/<id>`. One that is larger than a part is sent in parts; the upload's name is noted in the
 * database before the first of them, so that a sweep can give it up when this process dies. Where it may have died before that,
 * uploads are looked for by their key, as far as the service lists them: nothing else is ever listed, and no request depends on
 * a condition, since services differ in both.
 */
export class S3Place implements BlobPlace {
  readonly name: string
  private readonly location: S3Location
  private readonly world: Pick<World, 'sleep' | 'random'>
  private readonly partBytes: number
  private client: Promise<S3mini> | null = null
  private root: string

  /** `partBytes`: the length of a part but the last, no less than the service takes. */
  constructor(location: S3Location, world: Pick<World, 'sleep' | 'random'>, { partBytes = leastPartBytes } = {}) {
    this.location = location
    this.world = world
    this.partBytes = partBytes
    this.name = `the bucket ${location.bucket}`
    this.root = location.prefix
  }

  async put({ id, beginUpload }: NewBlob, source: AsyncIterable<Uint8Array>): Promise<void> {
    const parts = gathered(source, this.partBytes)[Symbol.asyncIterator]()
    try {
      const first = await parts.next()
      if (first.done === true || first.value.length < this.partBytes) {
        const bytes = first.done === true ? new Uint8Array(0) : first.value
        return await this.again(async (s3) => void (await s3.putObject(this.keyOf(id), asData(bytes), octets)))
      }
      await this.putParts({ id, beginUpload }, first.value, parts)
    } finally {
      await parts.return(undefined)
    }
  }

  async open(id: string, range?: ByteRange, sizeBytes?: number): Promise<Readable> {
    if (range !== undefined && range.end <= range.start) return Readable.from([])
    const { start, end } = range ?? {}
    const { status, body, headers } = await this.again((s3) =>
      s3.getObjectRaw(this.keyOf(id), range === undefined, start, end),
    ).catch((error: unknown) => {
      throw isNotThere(error) ? new BlobMissingError(id) : error
    })
    if (range !== undefined && !isOfRange({ status, headers }, range)) {
      await body?.cancel()
      throw new StorageError(this.name, new Error(`bytes ${start} to ${range.end - 1} were asked for, and others came`))
    }
    const found = sizeOf(headers)
    if (found !== null && sizeBytes !== undefined && found !== sizeBytes) {
      await body?.cancel()
      throw wrongSize(this.name, { id, found, sizeBytes })
    }
    return body === null ? Readable.from([]) : Readable.fromWeb(body)
  }

  async remove({ id, upload, isWhole }: GoneBlob): Promise<void> {
    const key = this.keyOf(id)
    const begun = isWhole ? [] : await this.uploadsOf(key)
    for (const each of new Set(upload === null ? begun : [upload, ...begun]))
      await this.again((s3) => s3.abortMultipartUpload(key, each)).catch(unlessNotThere)
    await this.again((s3) => s3.deleteObject(key)).catch(unlessNotThere)
  }

  async has(id: string): Promise<boolean> {
    return (await this.again((s3) => s3.objectExists(this.keyOf(id)))) === true
  }

  async isMarked(mark: string): Promise<boolean> {
    return (await this.again((s3) => s3.objectExists(this.markOf(mark)))) === true
  }

  async mark(mark: string): Promise<void> {
    await this.again(async (s3) => void (await s3.putObject(this.markOf(mark), mark, octets)))
  }

  use(mark: string): void {
    this.root = joined(this.location.prefix, mark)
  }

  private async putParts({ id, beginUpload }: NewBlob, first: Uint8Array, rest: AsyncIterator<Uint8Array>) {
    const key = this.keyOf(id)
    const upload = await this.again((s3) => s3.getMultipartUploadId(key, octets))
    try {
      await beginUpload(upload)
      const sent: Awaited<ReturnType<S3mini['uploadPart']>>[] = []
      for (let part: IteratorResult<Uint8Array> = { value: first }; part.done !== true; part = await rest.next()) {
        const { value } = part
        sent.push(await this.again((s3) => s3.uploadPart(key, upload, asData(value), sent.length + 1)))
      }
      await this.again(async (s3) => expectCompleted(await s3.completeMultipartUpload(key, upload, sent)))
    } catch (error) {
      // A sweep gives it up when it cannot be given up now.
      await this.again((s3) => s3.abortMultipartUpload(key, upload), 1).catch(() => undefined)
      throw error
    }
  }

  /** Uploads that were begun and did not end; none where the service does not list them, or not for us. */
  private async uploadsOf(key: string): Promise<string[]> {
    const listed = await this.again((s3) => s3.listMultipartUploads('/', '', 'GET', { prefix: key })).catch(
      (error: unknown) => {
        if (error instanceof StorageError && error.isRefusal) return null
        throw error
      },
    )
    return uploadsIn(listed).flatMap((each) => (each.Key === key ? [each.UploadId] : []))
  }

  private keyOf(id: string): string {
    return joined(this.root, id)
  }

  private markOf(mark: string): string {
    return joined(this.location.prefix, mark, 'mark')
  }

  /** Tries again what fails on the other side: services refuse now and then when they are busy. */
  private async again<Result>(work: (s3: S3mini) => Promise<Result>, tries = 3): Promise<Result> {
    for (let attempt = 1; ; attempt++) {
      try {
        this.client ??= connect(this.location)
        return await work(await this.client)
      } catch (error) {
        const isRefusal = isRefused(error)
        if (attempt >= tries || isRefusal) throw new StorageError(this.name, error, { isRefusal })
        await this.world.sleep(attempt * againMs * (0.5 + this.world.random()))
      }
    }
  }
}

/** Bytes of the whole object, of which the answer may have a part; null where nothing says so. */
function sizeOf(headers: Headers): number | null {
  // A proxy has packed the body, and tells the length of that.
  if (headers.has('content-encoding')) return null
  const said = headers.get('content-range')?.split('/')[1] ?? headers.get('content-length')
  return said != null && /^\d+$/.test(said) ? Number(said) : null
}

/** A service, or a proxy before it, may ignore the range and answer with the whole. */
const isOfRange = ({ status, headers }: Pick<Response, 'status' | 'headers'>, { start, end }: ByteRange): boolean =>
  status === 206 && headers.get('content-range')?.startsWith(`bytes ${start}-${end - 1}/`) !== false

/**
 * Fails where the upload did not become an object. A service begins to answer 200 before it is done, and then tells its failure in the
 * body, which the client takes for an answer:
 * https://docs.aws.amazon.com/AmazonS3/latest/API/API_CompleteMultipartUpload.html
 */
function expectCompleted(answer: Awaited<ReturnType<S3mini['completeMultipartUpload']>>): void {
  if (!answer.etag) throw new Error(`the upload was not completed: ${JSON.stringify(answer).slice(0, 500)}`)
}

/** The least that services take for a part. */
const leastPartBytes = 5 * 1024 * 1024
const octets = 'application/octet-stream'
const againMs = 200
/** A read takes as long as its reader does; the client ends one that gets nothing for minutes. */
const writeMs = 60_000

/** Loaded when it is needed: its `fetch` brings an HTTP client along that nothing else here uses. */
async function connect({ endpoint, bucket, region, keyId, secret }: S3Location): Promise<S3mini> {
  const { S3mini: Client } = await import('s3mini')
  const sender = new ByteSender()
  return new Client({
    endpoint: `${endpoint}/${bucket}`,
    region,
    accessKeyId: keyId,
    secretAccessKey: secret,
    fetch: (url, init) => {
      if (typeof url === 'string' && init?.body instanceof Uint8Array) {
        const { method = 'PUT', headers, body: bytes } = init
        return sender.send(url, {
          method,
          headers: headers as Record<string, string>,
          bytes,
          timeoutMs: writeMs,
        })
      }
      return fetch(url, init?.method === 'GET' ? init : { ...init, signal: AbortSignal.timeout(writeMs) })
    },
  })
}

const joined = (...parts: string[]): string => parts.filter((part) => part !== '').join('/')
const asData = (bytes: Uint8Array) => bytes as Uint8Array<ArrayBuffer>

const statusOf = (error: unknown): number | undefined => (error as { status?: number } | null)?.status
/** Returns whether another try would change nothing. */
const isRefused = (error: unknown): boolean => {
  const status = statusOf(error)
  return status === 501 || (status !== undefined && status >= 400 && status < 500 && status !== 408 && status !== 429)
}
const isNotThere = (error: unknown): boolean => error instanceof StorageError && statusOf(error.cause) === 404
function unlessNotThere(error: unknown): void {
  if (!isNotThere(error)) throw error
}
