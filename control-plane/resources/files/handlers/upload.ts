import { actorOf } from '../../../http/callers.ts'
import { fail } from '../../../../shared/api/errors.ts'
import type { RelationInput } from '../../../../shared/api/file-fields.ts'
import type { fileRoutes } from '../../../../shared/api/files.ts'
import type { StoredContent } from '../../../../shared/api/stored-content.ts'
import { ownBlob } from '../../../blobs/store.ts'
import { answer, type HandlerInput } from '../../../http/implement.ts'
import type { DetectedType } from '../own/content-type.ts'
import { liveFile } from '../own/lookup.ts'
import { insertFileRelation } from '../own/relation-store.ts'
import { insertFileRevision } from '../revision-store.ts'
import { visibleEntity } from '../steps/entities.ts'
import { presentFile } from '../steps/own/present.ts'
import { insertFile, replaceFile, type FileRow } from '../store.ts'

// The bytes are stored already; the transaction says whose they are.

export async function createFile(
  { db, caller, body, world }: HandlerInput<typeof fileRoutes.create>,
  { contentType, textPreview }: DetectedType,
) {
  // An agent is no owner of what it uploads.
  if (body.visibility === 'private' && caller.kind === 'agent')
    fail('visibility_flip_forbidden', { param: 'visibility' })
  const { sha256, sizeBytes, blobId } = body.contentBase64
  const now = world.now()
  const by = actorOf(caller)
  const file: FileRow = {
    id: world.id('file_'),
    workspaceId: caller.workspaceId,
    name: body.name,
    contentType,
    sizeBytes,
    description: body.description ?? null,
    ownerRef: caller.kind === 'person' ? caller.personRef : null,
    visibility: body.visibility,
    createdByType: by.type,
    createdByRef: by.id,
    sha256,
    textPreview,
    revisionCount: 1,
    blobId,
    deletedAt: null,
    version: 1,
    createdAt: now,
    updatedAt: now,
  }
  await insertFile(db, file)
  await addRevision({ db, world, caller }, file, body.contentBase64)
  for (const [at, relation] of body.relations.entries()) await relate({ db, world, caller }, file, { relation, at })
  return answer(201, await presentFile(db, file))
}

export async function replace(
  { db, caller, params, body, world }: HandlerInput<typeof fileRoutes.replace>,
  { contentType, textPreview }: DetectedType,
) {
  const before = await liveFile(db, caller, params.id)
  const { sha256, sizeBytes, blobId } = body.contentBase64
  const after: FileRow = {
    ...before,
    contentType,
    textPreview,
    sha256,
    sizeBytes,
    blobId,
    revisionCount: before.revisionCount + 1,
    updatedAt: world.now(),
  }
  await replaceFile(db, before, after)
  await addRevision({ db, world, caller }, after, body.contentBase64)
  return presentFile(db, after)
}

type By = Pick<HandlerInput<typeof fileRoutes.replace>, 'db' | 'world' | 'caller'>

async function addRevision({ db, world, caller }: By, file: FileRow, content: StoredContent): Promise<void> {
  const { blobId, sizeBytes, sha256 } = content
  const now = world.now()
  await ownBlob(db, blobId, now)
  const { type, id } = actorOf(caller)
  await insertFileRevision(db, {
    id: world.id('frev_'),
    fileId: file.id,
    number: file.revisionCount,
    blobId,
    sizeBytes,
    contentType: file.contentType,
    sha256,
    authorType: type,
    authorRef: id,
    createdAt: now,
  })
}

/** Relates the file to a thing once, also where that is named twice. */
async function relate(
  { db, world, caller }: By,
  file: FileRow,
  { relation, at }: { relation: RelationInput; at: number },
): Promise<void> {
  const entity = await visibleEntity(db, caller, relation, `relations.${at}.entityId`)
  const { role } = relation
  await insertFileRelation(db, { id: world.uuid(), fileId: file.id, ...entity, role, createdAt: world.now() })
}
