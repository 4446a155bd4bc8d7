import { idFrom, type FileId } from '../../../../shared/lib/ids.ts'
import { fail } from '../../../../shared/api/errors.ts'
import { fileRelationRoutes } from '../../../../shared/api/file-relations.ts'
import type { BulkRow } from '../../../../shared/api/file-fields.ts'
import { uuid } from '../../../../shared/api/ids.ts'
import { beforeOf, pageByTime, timeAndId } from '../../../../shared/api/paging.ts'
import { answer, implement, type HandlerInput, type ImplementedRoute } from '../../../http/implement.ts'
import { liveFile, lookUpFile } from '../own/lookup.ts'
import {
  findFileRelation,
  insertFileRelation,
  removeFileRelation,
  type FileRelationRow,
} from '../own/relation-store.ts'
import { onlyVisibleEntities, visibleEntity } from '../steps/entities.ts'
import { presentRelation } from '../steps/own/present.ts'
import { listVisibleRelations } from '../steps/own/visible-relations.ts'

/** Handles the relations of files. Whoever does not see a thing does not see that a file belongs to it. */
export function fileRelationHandlers(): ImplementedRoute[] {
  return implement(fileRelationRoutes, {
    list,

    async add({ db, caller, params, body, world }) {
      const file = await liveFile(db, caller, params.id)
      const entity = await visibleEntity(db, caller, body)
      const relation = { id: world.uuid(), fileId: file.id, ...entity, role: body.role, createdAt: world.now() }
      if (!(await insertFileRelation(db, relation))) fail('duplicate_relation', { param: 'role' })
      return answer(201, presentRelation(relation))
    },

    async get(input) {
      return presentRelation(await visibleRelation(input))
    },

    async remove(input) {
      const { fileId, id } = await visibleRelation(input)
      await removeFileRelation(input.db, fileId, id)
    },

    bulk,
  })
}

const cursor = timeAndId(uuid)

async function list({ db, caller, params, query }: HandlerInput<typeof fileRelationRoutes.list>) {
  const file = await liveFile(db, caller, params.id)
  const { limit } = query
  const rows = await listVisibleRelations(db, caller, { fileId: file.id, ...beforeOf(query, cursor), limit })
  return pageByTime(rows, limit, presentRelation)
}

async function visibleRelation({
  db,
  caller,
  params,
}: Pick<HandlerInput<typeof fileRelationRoutes.get>, 'db' | 'caller' | 'params'>): Promise<FileRelationRow> {
  const file = await liveFile(db, caller, params.id)
  const relation = await findFileRelation(db, file.id, params.relationId)
  const [seen] = await onlyVisibleEntities(db, caller, relation === null ? [] : [relation])
  return seen ?? fail('relation_not_found', { param: 'relationId' })
}

async function bulk({ db, caller, body, world }: HandlerInput<typeof fileRelationRoutes.bulk>) {
  const entity = await visibleEntity(db, caller, body)
  const results: BulkRow[] = []
  for (const fileId of body.fileIds) {
    const file = await lookUpFile(db, caller, fileId)
    const relation = {
      id: world.uuid(),
      fileId: idFrom<FileId>(fileId),
      ...entity,
      role: body.role,
      createdAt: world.now(),
    }
    if (file === null) results.push({ fileId, ok: false, code: 'file_not_found' })
    else if (await insertFileRelation(db, relation)) results.push({ fileId, ok: true })
    else results.push({ fileId, ok: false, code: 'duplicate_relation' })
  }
  return { results }
}
