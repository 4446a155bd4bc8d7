import { certificateTrouble } from '../../shared/lib/certificate-trouble.ts'
import { createHash, createPublicKey, verify, type KeyObject } from 'node:crypto'
import { createReadStream, createWriteStream, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import {
  manifestLimits,
  manifestNames,
  releaseManifest,
  type ReleasedFile,
  type ReleaseManifest,
} from '../../shared/releases/manifest.ts'
import { parseJsonText } from '../../shared/lib/lines.ts'
import { CliError, usageError } from '../errors/cli-error.ts'

/** Where a release lies: a folder of this machine, or an address. What comes from there is believed only after it was verified. */
export interface ReleaseSource {
  /** Shown to people. */
  name: string
  /** The bytes of a file of at most so many bytes. */
  read(name: string, mostBytes: number): Promise<Buffer>
  /** Opens a file to be read piece by piece. */
  open(name: string): Promise<Readable>
}

/** So much must come in each of these times until all is there: whoever fetches keeps other upgrades out meanwhile. */
const leastSpeed = { windowMs: 60_000, bytes: 65_536 }

/**
 * Reads what was given: a folder of a release, a file in one, or the address of one (http, https), to which the names of files are added.
 */
export function sourceOf(given: string, resolvePath: (path: string) => string): ReleaseSource {
  if (/^https?:\/\//i.test(given)) return addressSource(given)
  const path = resolvePath(given)
  const stat = statSync(path, { throwIfNoEntry: false })
  if (stat === undefined)
    throw new CliError('file_not_found', `There is no file or folder ${path}.`, {
      remediation: 'Name a folder that has release.json, a tarball in one, or the address of one.',
    })
  return folderSource(stat.isDirectory() ? path : dirname(path))
}

function folderSource(folder: string): ReleaseSource {
  const fail = (name: string, error: unknown) => {
    throw new CliError('release_unreadable', `${join(folder, name)} cannot be read: ${(error as Error).message}.`, {
      remediation: 'A release is a folder with release.json, release.json.sig and the files that it names.',
    })
  }
  return {
    name: folder,
    async read(name, mostBytes) {
      try {
        if (statSync(join(folder, name)).size > mostBytes) throw new Error('it is too large')
        return readFileSync(join(folder, name))
      } catch (error) {
        return fail(name, error)
      }
    },
    async open(name) {
      return createReadStream(join(folder, name))
    },
  }
}

export function addressSource(given: string, least = leastSpeed): ReleaseSource {
  const address = URL.parse(given)
  // It would be kept, and shown in errors.
  if (address === null || `${address.username}${address.password}` !== '')
    throw usageError(
      'The address of a release cannot be read, or has a user or a password in it.',
      'Name it as https://HOST/PATH. A release is signed and needs no secret address.',
    )
  const base = given.endsWith('/') ? given : `${given}/`
  const open = async (name: string): Promise<Readable> => {
    const url = new URL(name, base)
    const slowness = new AbortController()
    let came = 0
    const timer = setInterval(() => {
      if (came < least.bytes)
        slowness.abort(new Error(`${came} bytes came in ${least.windowMs / 1_000} s, which is too slow`))
      came = 0
    }, least.windowMs)
    try {
      const answer = await fetch(url, { signal: slowness.signal })
      if (!answer.ok || answer.body === null) {
        await answer.body?.cancel()
        throw new Error(`it answered ${answer.status}`)
      }
      const body = Readable.fromWeb(answer.body as never)
      body.on('data', (piece: Uint8Array) => (came += piece.byteLength))
      body.on('close', () => clearInterval(timer))
      // Not before somebody takes it.
      return body.pause()
    } catch (error) {
      clearInterval(timer)
      throw unreachable(url, error)
    }
  }
  return {
    name: base,
    async read(name, mostBytes) {
      const body = await open(name)
      try {
        const pieces: Buffer[] = []
        let bytes = 0
        for await (const piece of body as AsyncIterable<Buffer>) {
          bytes += piece.length
          if (bytes > mostBytes) throw new Error('its answer is too large')
          pieces.push(piece)
        }
        return Buffer.concat(pieces)
      } catch (error) {
        throw unreachable(new URL(name, base), error)
      }
    },
    open,
  }
}

function unreachable(url: URL, error: unknown): CliError {
  const cause = (error as Error).cause
  const why = certificateTrouble(error) ?? (cause instanceof Error ? cause.message : (error as Error).message)
  return new CliError('release_unreachable', `${url.href} cannot be read: ${why}.`, {
    exit: 'unreachable',
    remediation: 'Name the address of the folder that has release.json.',
    cause: error,
  })
}

/** Reads the manifest of a release. Fails where it was not signed by the key, or does not have its form. */
export async function verifiedManifest(source: ReleaseSource, publicKey: string): Promise<ReleaseManifest> {
  const bytes = await source.read(manifestNames.manifest, manifestLimits.manifestBytes)
  const signature = await source.read(manifestNames.signature, signatureBytes)
  if (!isSigned(bytes, { signature: String(signature), publicKey }))
    throw new CliError(
      'signature_invalid',
      `The release in ${source.name} was not signed by the key that this svc trusts.`,
      {
        remediation: 'Nothing was changed. If whoever makes your releases has another key, name its file with --key.',
      },
    )
  const manifest = releaseManifest.safeParse(parseJsonText(bytes.toString('utf8')))
  if (!manifest.success)
    throw new CliError('release_unreadable', `The manifest in ${source.name} has a form that this svc cannot read.`, {
      remediation: 'Install the newer release by its tarball and `./install`.',
    })
  return manifest.data
}

const signatureBytes = 1_024

/** Whether the key (PEM, SPKI) made the signature (base64, Ed25519 of RFC 8032) of these bytes. */
function isSigned(bytes: Buffer, { signature, publicKey }: { signature: string; publicKey: string }): boolean {
  const key = readPublicKey(publicKey)
  return verify(null, bytes, key, Buffer.from(signature.trim(), 'base64'))
}

function readPublicKey(pem: string): KeyObject {
  try {
    const key = createPublicKey(pem)
    if (key.asymmetricKeyType === 'ed25519') return key
  } catch {
    // As a key of another kind.
  }
  throw new CliError('key_unreadable', 'The key that releases are verified with is no public key of Ed25519 (PEM).', {
    remediation: 'Name the file of another one with --key.',
  })
}

/** Copies a file of a release to a path, and fails where it is not the one of the manifest. */
export async function fetchVerified(source: ReleaseSource, file: ReleasedFile, path: string): Promise<void> {
  const hash = createHash('sha256')
  let bytes = 0
  const counted = new Transform({
    transform(piece: Buffer, _encoding, done) {
      bytes += piece.length
      hash.update(piece)
      if (bytes > file.bytes) done(new Error('it is longer than the manifest says'))
      else done(null, piece)
    },
  })
  try {
    await pipeline(await source.open(file.name), counted, createWriteStream(path, { flags: 'wx', mode: 0o600 }))
  } catch (error) {
    if (error instanceof CliError) throw error
    throw new CliError('release_unreadable', `${file.name} could not be fetched: ${(error as Error).message}.`, {
      remediation: 'Nothing was changed. Type the command again.',
      cause: error,
    })
  }
  if (bytes === file.bytes && hash.digest('hex') === file.sha256) return
  throw new CliError('hash_differs', `${file.name} in ${source.name} is not the file that the signed manifest names.`, {
    remediation: 'Nothing was changed. Fetch the release again.',
  })
}
