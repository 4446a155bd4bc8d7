import type { Knex } from 'knex'
import type { BlobId } from '../../shared/lib/ids.ts'
import type { World } from '../../shared/lib/world.ts'
import { openBlobPlace } from '../blobs/location.ts'
import { moveBlobs, type KnownBytes, type MovedFiles } from '../blobs/move.ts'
import { StorageError } from '../blobs/place.ts'
import type { ServerConfig } from '../config.ts'
import type { Db } from '../db/open.ts'
import { OperatorError } from './people.ts'
import { listRevisionsOfBlobs } from '../resources/files/revision-store.ts'
import { totalOf } from '../resources/skills/bundle.ts'
import { listBundlesOfBlobs } from '../resources/skills/bundle-store.ts'

/** Copies all files into the place where servers store new ones, from the one in which they look for what is not there. */
export async function moveFiles(
  root: Knex,
  { files, otherFiles }: Pick<ServerConfig, 'files' | 'otherFiles'>,
  world: World,
): Promise<MovedFiles & { from: string; to: string }> {
  if (otherFiles === null)
    throw new OperatorError('Set SVC_FILES_OTHER_URL to the place where files are, and SVC_FILES_URL to the other one.')
  const [from, to] = [openBlobPlace(otherFiles, world), openBlobPlace(files, world)]
  try {
    const listKnown = (ids: readonly BlobId[]) => listStoredBytes(root, ids)
    return { from: from.name, to: to.name, ...(await moveBlobs(root, { from, to, listKnown })) }
  } catch (error) {
    if (!(error instanceof StorageError)) throw error
    throw new OperatorError(`Not all files are moved: ${error.message}. Type it again to go on.`)
  }
}

/** What the owners of these blobs know of their bytes; a blob without an owner is left out. */
export async function listStoredBytes(db: Db, ids: readonly BlobId[]): Promise<ReadonlyMap<BlobId, KnownBytes>> {
  const known = new Map<BlobId, KnownBytes>()
  for (const { blobId, sizeBytes, sha256 } of await listRevisionsOfBlobs(db, ids))
    if (blobId !== null) known.set(blobId, { sizeBytes, sha256 })
  for (const { blobId, files } of await listBundlesOfBlobs(db, ids))
    known.set(blobId, { sizeBytes: totalOf(files), sha256: null })
  return known
}
