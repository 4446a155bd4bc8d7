import { buffer } from 'node:stream/consumers'
import { fail } from '../../../../shared/api/errors.ts'
import type { fileRoutes } from '../../../../shared/api/files.ts'
import { BlobMissingError } from '../../../blobs/place.ts'
import type { HandlerInput } from '../../../http/implement.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { textOf } from '../own/content-type.ts'
import { unknownFile, visibleFile } from '../own/lookup.ts'
import { inlineLimitOf } from '../rules.ts'
import { presentFile, presentRelation } from '../steps/own/present.ts'
import { listVisibleRelations } from '../steps/own/visible-relations.ts'
import type { FileRow } from '../store.ts'

const shownRelations = 100

/** Returns one file, with its text or its relations where they are asked for. */
export async function read(
  { db, caller, params, query }: HandlerInput<typeof fileRoutes.get>,
  { blobs }: Pick<ResourceDependencies, 'blobs'>,
) {
  const file = await visibleFile(db, caller, params.id)
  const isShown = file.deletedAt === null || (query.includeDeleted === true && caller.kind === 'person')
  if (!isShown) return unknownFile()
  const expand = new Set(query.expand)
  const content = expand.has('content') ? await contentOf(file, inlineLimitOf(caller), blobs) : null
  const relations = expand.has('relations')
    ? await listVisibleRelations(db, caller, { fileId: file.id, limit: shownRelations })
    : null
  return {
    ...(await presentFile(db, file)),
    ...(content !== null && { content }),
    ...(relations !== null && { relations: relations.slice(0, shownRelations).map(presentRelation) }),
  }
}

/** The text of a file; null when it is none. */
async function contentOf(
  file: FileRow,
  limit: number,
  blobs: Pick<ResourceDependencies['blobs'], 'open'>,
): Promise<string | null> {
  if (file.deletedAt !== null || file.blobId === null) fail('kind_mismatch', { param: 'expand' })
  if (file.textPreview === null) return null
  if (file.sizeBytes > limit)
    fail('expand.content_too_large', {
      param: 'expand',
      message: `The file has ${file.sizeBytes} bytes; an answer holds up to ${limit}. Download it.`,
      details: { sizeBytes: file.sizeBytes, limitBytes: limit },
    })
  try {
    return textOf(await buffer(await blobs.open(file.blobId, undefined, file.sizeBytes)))
  } catch (error) {
    if (error instanceof BlobMissingError) return fail('kind_mismatch', { param: 'expand', cause: error })
    throw error
  }
}
