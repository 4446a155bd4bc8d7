import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { World } from '../../shared/lib/world.ts'
import { DiskPlace } from './disk.ts'
import type { BlobPlace } from './place.ts'
import { TwoPlaces } from './two-places.ts'
import { S3Place, type S3Location } from './s3.ts'

/** The place where files are kept, as the configuration says it. */
export type BlobLocation = { kind: 'disk'; folder: string } | S3Location

export interface S3Keys {
  keyId: string | undefined
  secret: string | undefined
}

/**
 * Reads `file:///folder` or `s3://bucket/prefix?endpoint=https://host&region=name`. Returns a sentence when it does not
 * read as one of them.
 */
export function readLocation(text: string, keys: S3Keys): BlobLocation | string {
  if (!URL.canParse(text)) return 'must be a URL'
  const url = new URL(text)
  if (url.protocol === 'file:') return folderOf(url)
  if (url.protocol !== 's3:') return 'must begin with s3:// or file://'
  const unknown = [...url.searchParams.keys()].find((key) => key !== 'endpoint' && key !== 'region')
  if (unknown !== undefined) return `has no parameter ${unknown}`
  if (!/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(url.hostname) || url.username !== '' || url.port !== '')
    return 'must name a bucket: s3://bucket/prefix'
  const prefix = url.pathname.replaceAll(/^\/+|\/+$/g, '')
  if (!/^[A-Za-z0-9._/-]{0,500}$/.test(prefix))
    return 'has a prefix with other characters than letters, digits, . _ - /'
  const region = url.searchParams.get('region') ?? 'us-east-1'
  if (!/^[a-z0-9-]{1,50}$/.test(region)) return 'has a region that is none'
  const endpoint = (url.searchParams.get('endpoint') ?? `https://s3.${region}.amazonaws.com`).replace(/\/+$/, '')
  if (!URL.canParse(endpoint) || !/^https?:$/.test(new URL(endpoint).protocol)) return 'has an endpoint that is no URL'
  const { keyId, secret } = keys
  if (keyId === undefined || secret === undefined) return 'needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY'
  return { kind: 's3', endpoint, bucket: url.hostname, prefix, region, keyId, secret }
}

function folderOf(url: URL): BlobLocation | string {
  if (url.host !== '') return 'names a host'
  try {
    return { kind: 'disk', folder: fileURLToPath(url) }
  } catch {
    return 'has an escape (%) that is none, or stands for a slash'
  }
}

/** However each is written. */
export function isSamePlace(one: BlobLocation, other: BlobLocation): boolean {
  if (one.kind === 'disk' || other.kind === 'disk')
    return one.kind === 'disk' && other.kind === 'disk' && resolve(one.folder) === resolve(other.folder)
  return one.endpoint === other.endpoint && one.bucket === other.bucket && one.prefix === other.prefix
}

/** The place of files, with the one from which they move there. */
export function openBlobPlaces(
  { files, otherFiles }: { files: BlobLocation; otherFiles: BlobLocation | null },
  world: Pick<World, 'sleep' | 'random'>,
): BlobPlace {
  const first = openBlobPlace(files, world)
  return otherFiles === null ? first : new TwoPlaces(first, openBlobPlace(otherFiles, world))
}

export function openBlobPlace(location: BlobLocation, world: Pick<World, 'sleep' | 'random'>): BlobPlace {
  return location.kind === 'disk' ? new DiskPlace(location.folder) : new S3Place(location, world)
}
