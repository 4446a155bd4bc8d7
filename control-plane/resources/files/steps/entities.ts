import { idFrom } from '../../../../shared/lib/ids.ts'
import { fail } from '../../../../shared/api/errors.ts'
import type { EntityType, RelationInput } from '../../../../shared/api/file-fields.ts'
import { projectUuidOf } from '../../../../shared/lib/project-ref.ts'
import type { Db } from '../../../db/open.ts'
import type { Caller } from '../../../http/callers.ts'
import { lookUpConversation } from '../../conversations/lookup.ts'
import { findMessage } from '../../conversations/message-store.ts'
import { lookUpProject } from '../../projects/lookup.ts'
import { lookUpRun } from '../../runs/lookup.ts'
import { lookUpTask } from '../../tasks/lookup.ts'

/** A thing that files belong to, as a request names it. */
export interface Entity {
  entityType: EntityType
  /** The id as it is stored (`relation-store.ts`). */
  entityId: string
}

type Named = Pick<RelationInput, 'entityType' | 'entityId'>
type LookUp = (db: Db, caller: Caller, reference: string) => Promise<string | null>

const lookUps: Record<EntityType, LookUp> = {
  task: async (db, caller, reference) => (await lookUpTask(db, caller, reference))?.id ?? null,
  project: async (db, caller, reference) => {
    const id = projectUuidOf(reference)
    const project = id === null ? null : await lookUpProject(db, caller, id)
    return project?.deletedAt === null ? project.id : null
  },
  run: async (db, caller, reference) => {
    const found = await lookUpRun(db, caller, reference)
    return found?.isVisible === true ? found.run.id : null
  },
  comment: async (db, caller, reference) => {
    const message = await findMessage(db, idFrom(reference))
    if (message === null || message.deletedAt !== null) return null
    return (await lookUpConversation(db, caller, message.conversationId)) === null ? null : message.id
  },
  conversation: async (db, caller, reference) => (await lookUpConversation(db, caller, reference))?.id ?? null,
}

/** The thing, if the caller sees it; null otherwise. */
export async function lookUpEntity(db: Db, caller: Caller, { entityType, entityId }: Named): Promise<Entity | null> {
  const id = await lookUps[entityType](db, caller, entityId)
  return id === null ? null : { entityType, entityId: id }
}

/** Fails with `resource_not_found`. */
export async function visibleEntity(db: Db, caller: Caller, named: Named, param = 'entityId'): Promise<Entity> {
  const found = await lookUpEntity(db, caller, named)
  return (
    found ?? fail('resource_not_found', { param, message: `There is no such ${named.entityType} that you can see.` })
  )
}

/** Tells whether the caller sees a thing; each is looked up once. */
export function sightOf(db: Db, caller: Caller): (entity: Entity) => Promise<boolean> {
  const seen = new Map<string, boolean>()
  return async ({ entityType, entityId }) => {
    const key = `${entityType} ${entityId}`
    const isSeen = seen.get(key) ?? (await lookUpEntity(db, caller, { entityType, entityId })) !== null
    seen.set(key, isSeen)
    return isSeen
  }
}

/** Returns those of the things that the caller sees. */
export async function onlyVisibleEntities<T extends Entity>(db: Db, caller: Caller, all: readonly T[]): Promise<T[]> {
  const isSeen = sightOf(db, caller)
  const visible: T[] = []
  for (const one of all) if (await isSeen(one)) visible.push(one)
  return visible
}
