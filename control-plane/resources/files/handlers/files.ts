import { idFrom, type BlobId, type FileId } from '../../../../shared/lib/ids.ts'
import { changedRow } from '../../../db/changed-row.ts'
import { fail } from '../../../../shared/api/errors.ts'
import { fileRoutes } from '../../../../shared/api/files.ts'
import { fileId } from '../../../../shared/api/ids.ts'
import { batchOf, beforeOf, cursorOf, pageByTime, pageOf, timeAndId } from '../../../../shared/api/paging.ts'
import { withoutUndefined } from '../../../../shared/lib/without-undefined.ts'
import { z } from 'zod'
import { implement, prepared, type HandlerInput, type ImplementedRoute } from '../../../http/implement.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { findMemberByReference } from '../../members/store.ts'
import { detectType, type DetectedType } from '../own/content-type.ts'
import { liveFile, lookUpFile, unknownFile, visibleFile } from '../own/lookup.ts'
import { presentFileSummary } from '../own/present.ts'
import { findFileRevision, findRevisionNumber, listFileRevisions } from '../revision-store.ts'
import { fileViewerOf, ownsOrAdministersFile } from '../rules.ts'
import { lookUpEntity } from '../steps/entities.ts'
import { presentFile, presentFileRevisions } from '../steps/own/present.ts'
import { deleteFile } from '../steps/remove.ts'
import { listFiles, listFilesByIds, replaceFile, type FileRow } from '../store.ts'
import { read } from './read.ts'
import { createFile, replace } from './upload.ts'

type Dependencies = Pick<ResourceDependencies, 'blobs' | 'fileUrls' | 'isSweeping' | 'publicUrl'>
type Routes = typeof fileRoutes

export function fileHandlers(deps: Dependencies): ImplementedRoute[] {
  return implement(fileRoutes, {
    list,

    create: prepared<Routes['create'], DetectedType>({
      before: ({ body: { name, contentType, contentBase64 } }) =>
        detectType(contentBase64.head, { name, sizeBytes: contentBase64.sizeBytes, sent: contentType }),
      handle: createFile,
    }),

    get: (input) => read(input, deps),
    update,

    async delete({ db, caller, params, world }) {
      checkSweeping(deps)
      const file = await liveFile(db, caller, params.id)
      await deleteFile(db, file, { blobs: deps.blobs, world, keepsBytes: false })
    },

    async restore({ db, caller, params, world }) {
      const before = await visibleFile(db, caller, params.id)
      if (before.deletedAt === null) fail('not_deleted')
      if (!ownsOrAdministersFile(before, caller)) fail('restore_forbidden')
      if (before.blobId === null) fail('restore_r2_gone')
      return changed({ db, world }, before, { deletedAt: null })
    },

    async download({ db, caller, params, world }) {
      const file = await liveFile(db, caller, params.id)
      const revision = await findRevisionNumber(db, file.id, file.revisionCount)
      return urlOf(deps, revision, world.now())
    },

    async downloadRevision({ db, caller, params, world }) {
      const file = await liveFile(db, caller, params.id)
      const revision = await findFileRevision(db, file.id, params.revisionId)
      if (revision?.blobId == null) {
        const message = revision === null ? 'The file has no such version.' : 'The bytes of this version were removed.'
        return fail('resource_not_found', { param: 'revisionId', message })
      }
      return urlOf(deps, revision, world.now())
    },

    revisions,

    replace: prepared<Routes['replace'], DetectedType>({
      async before({ db, caller, params, body: { contentBase64 } }) {
        const { name } = await liveFile(db, caller, params.id)
        return detectType(contentBase64.head, { name, sizeBytes: contentBase64.sizeBytes })
      },
      handle: replace,
    }),

    async transferOwner({ db, caller, params, body, world }) {
      const before = await liveFile(db, caller, params.id)
      if (!ownsOrAdministersFile(before, caller)) fail('owner_transfer.forbidden')
      const param = 'newOwnerId'
      const owner = await findMemberByReference(db, caller.workspaceId, body.newOwnerId)
      if (owner === null) return fail('owner_transfer.user_not_found', { param })
      if (owner.publicId === before.ownerRef) fail('owner_transfer.same_owner', { param })
      return changed({ db, world }, before, { ownerRef: owner.publicId })
    },

    async bulkDelete({ db, caller, body, world }) {
      checkSweeping(deps)
      const results = []
      for (const id of body.fileIds) {
        const file = await lookUpFile(db, caller, id)
        if (file !== null) await deleteFile(db, file, { blobs: deps.blobs, world, keepsBytes: true })
        results.push({ fileId: id, ok: file !== null, ...(file === null && { code: 'file_not_found' as const }) })
      }
      return { results }
    },
  })
}

/** Until deleted files are purged in time, none is deleted. */
function checkSweeping({ isSweeping }: Dependencies): void {
  if (!isSweeping()) fail('sweeper_not_registered', { headers: { 'Retry-After': '1' } })
}

const listCursor = timeAndId(fileId)

async function list({ db, caller, query }: HandlerInput<Routes['list']>) {
  const { workspaceId } = caller
  const visibleTo = fileViewerOf(caller)
  if (query.ids !== undefined) {
    const found = new Map(
      (await listFilesByIds(db, { workspaceId, ids: query.ids.map((id) => idFrom<FileId>(id)), visibleTo })).map(
        (f) => [f.id, f],
      ),
    )
    return batchOf(query.ids, (id) => {
      const file = found.get(idFrom(id))
      return file === undefined ? null : presentFileSummary(file)
    })
  }
  const isDeleted = query.status === 'deleted'
  if (isDeleted && caller.kind === 'agent') fail('list_deleted_forbidden', { param: 'status' })
  const { entityType, entityId, limit, q } = query
  if ((entityType === undefined) !== (entityId === undefined))
    fail('validation_error', {
      param: entityType === undefined ? 'entityType' : 'entityId',
      message: 'entityType and entityId are sent together.',
    })
  const entity =
    entityType === undefined || entityId === undefined
      ? undefined
      : await lookUpEntity(db, caller, { entityType, entityId })
  // A filter that names nothing visible matches nothing.
  const before = beforeOf(query, listCursor)
  const rows =
    entity === null
      ? []
      : await listFiles(db, { workspaceId, visibleTo, isDeleted, ...withoutUndefined({ q, entity }), ...before, limit })
  return pageByTime(rows, limit, presentFileSummary)
}

async function update({ db, caller, params, body, world }: HandlerInput<Routes['update']>) {
  const before = await liveFile(db, caller, params.id)
  const { name, description, visibility } = body
  const isFlip = visibility === 'private' || (visibility !== undefined && visibility !== before.visibility)
  if (isFlip && !ownsOrAdministersFile(before, caller)) fail('visibility_flip_forbidden', { param: 'visibility' })
  return changed({ db, world }, before, withoutUndefined({ name, description, visibility }))
}

async function changed(
  { db, world }: Pick<HandlerInput<Routes['update']>, 'db' | 'world'>,
  before: FileRow,
  changes: Partial<FileRow>,
) {
  const after = changedRow(before, changes, world.now())
  await replaceFile(db, before, after)
  return presentFile(db, after)
}

/** Fails with `kind_mismatch` when the bytes are not there. */
async function urlOf(
  { blobs, fileUrls, publicUrl }: Dependencies,
  revision: { id: string; fileId: FileId; blobId: BlobId | null } | null,
  now: number,
) {
  if (revision === null) return unknownFile()
  if (revision.blobId === null || !(await blobs.has(revision.blobId))) fail('kind_mismatch')
  const { url, expiresAt } = fileUrls.urlOf(publicUrl(), { fileId: revision.fileId, revisionId: revision.id }, now)
  return { object: 'file_url' as const, url, expiresAt: new Date(expiresAt).toISOString() }
}

const revisionCursor = z.tuple([z.number().int().positive().max(2_147_483_647)])

async function revisions({ db, caller, params, query }: HandlerInput<Routes['revisions']>) {
  const file = await liveFile(db, caller, params.id)
  const { limit } = query
  const below = cursorOf(query, revisionCursor)?.[0] ?? null
  const rows = await listFileRevisions(db, { fileId: file.id, below, limit })
  const shown = await presentFileRevisions(db, file.workspaceId, rows.slice(0, limit))
  const byId = new Map(shown.map((revision) => [revision.id, revision]))
  return pageOf({ rows, limit, keyOf: ({ number }) => [number], present: ({ id }) => byId.get(id)! })
}
