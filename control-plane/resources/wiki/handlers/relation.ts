import { fail } from '../../../../shared/api/errors.ts'
import { toTimestamp } from '../../../../shared/api/ids.ts'
import type { WikiRelation } from '../../../../shared/api/wiki-fields.ts'
import type { wikiRoutes } from '../../../../shared/api/wiki.ts'
import { answer, type HandlerInput } from '../../../http/implement.ts'
import { lookUpPage, namedPage } from '../own/lookup.ts'
import {
  insertRelation,
  isSuperseding,
  lockRelations,
  removeRelation,
  type WikiRelationRow,
} from '../own/relation-store.ts'
import { changePage } from '../steps/own/page.ts'

type Routes = typeof wikiRoutes
const param = 'toPageId'

export async function supersede({ db, caller, params, body, world }: HandlerInput<Routes['supersede']>) {
  const { workspaceId } = caller
  await lockRelations(db, workspaceId)
  const page = await namedPage(db, workspaceId, params.id)
  const other = await lookUpPage(db, workspaceId, body.toPageId)
  if (other === null) return fail('wiki_relation_workspace_mismatch', { param })
  if (other.id === page.id) fail('wiki_relation_self', { param })
  if (await isSuperseding(db, other.id, page.id))
    fail('wiki_relation_exists', { param, message: 'That page supersedes this one, directly or through others.' })
  const relation = { fromPageId: page.id, toPageId: other.id, createdAt: world.now() }
  if (!(await insertRelation(db, relation)))
    fail('wiki_relation_exists', { param, message: 'This page supersedes that one already.' })
  // The files say whether an ingested page is live.
  if (other.sourceRef === null) await changePage(db, other, { archived: true }, world)
  return answer(201, present(relation))
}

export async function unsupersede({ db, caller, params, query, body }: HandlerInput<Routes['unsupersede']>) {
  const toPageId = query.toPageId ?? body.toPageId
  if (toPageId === undefined || (body.toPageId ?? toPageId) !== toPageId)
    return fail('validation_error', { param, message: 'Send toPageId once, in the query or in the body.' })
  const page = await namedPage(db, caller.workspaceId, params.id)
  const other = await lookUpPage(db, caller.workspaceId, toPageId)
  const isRemoved = other !== null && (await removeRelation(db, { fromPageId: page.id, toPageId: other.id }))
  if (!isRemoved) fail('wiki_page_not_found', { param, message: 'The page supersedes no such page.' })
}

function present({ fromPageId, toPageId, createdAt }: WikiRelationRow): WikiRelation {
  return { object: 'wiki_relation', kind: 'supersedes', fromPageId, toPageId, createdAt: toTimestamp(createdAt) }
}
