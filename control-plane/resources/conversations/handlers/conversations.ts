import { idFrom } from '../../../../shared/lib/ids.ts'
import { actorOf } from '../../../http/callers.ts'
import { conversationRoutes } from '../../../../shared/api/conversations.ts'
import { fail } from '../../../../shared/api/errors.ts'
import { idCursorOf, idPageOf, type IdCursor } from '../../../../shared/api/id-paging.ts'
import { conversationId, toTimestamp } from '../../../../shared/api/ids.ts'
import { batchOf, timeAndId } from '../../../../shared/api/paging.ts'
import { decodeCursor, encodeCursor } from '../../../../shared/lib/cursor.ts'
import { implement, type HandlerInput, type ImplementedRoute } from '../../../http/implement.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { lookUpTask } from '../../tasks/lookup.ts'
import {
  addParticipant,
  archiveConversation,
  deleteConversation,
  takeParticipantOut,
  unarchiveConversation,
} from './admin.ts'
import { createConversation } from './create.ts'
import { listConversationEvents } from './event.ts'
import {
  heldConversation,
  isConversationVisible,
  lookUpParticipant,
  readableConversation,
  viewerOfConversations,
} from '../lookup.ts'
import { isParticipant, listReads } from '../participant-store.ts'
import { markRead } from '../steps/read.ts'
import { presentConversation, presentConversations, presentDetail } from '../present.ts'
import { activityOf, capabilitiesOf } from '../own/rules.ts'
import { storeConversation } from '../own/store-conversation.ts'
import { updateRuntime } from './runtime.ts'
import { sendMessage } from './send.ts'
import { listConversations, listConversationsByIds, type ConversationFilter, type ConversationRow } from '../store.ts'
import { withoutUndefined } from '../../../../shared/lib/without-undefined.ts'

type Dependencies = Pick<ResourceDependencies, 'bus' | 'catalog' | 'leaseMs' | 'wakeContext'>

export function conversationHandlers(deps: Dependencies): ImplementedRoute[] {
  return implement(conversationRoutes, {
    create: createConversation,
    list,

    async get({ db, caller, params, query }) {
      const conversation = await readableConversation(db, caller, params.id)
      return presentDetail(db, caller, { conversation, include: query.include ?? [] })
    },

    async rename({ db, caller, params, body, world }) {
      const before = await readableConversation(db, caller, params.id)
      const isIn = await isParticipant(db, before.id, actorOf(caller))
      if (!capabilitiesOf(before, { caller, isIn }).canEdit)
        fail('not_authorized', { message: 'Only who is in it, or a workspace admin, renames a conversation.' })
      const after = await storeConversation(db, world, { before, changes: { title: body.title } })
      return presentConversation(db, caller, after)
    },

    async read({ db, caller, params, world }) {
      const { id } = await readableConversation(db, caller, params.id)
      const at = world.now()
      // Nothing is counted for an agent: its wake tells it what is new.
      if (caller.kind === 'agent') return { lastReadAt: toTimestamp(at) }
      const personRef = caller.personRef
      const conversation = await heldConversation(db, id)
      await markRead(db, conversation, { personRef, at })
      const mark = (await listReads(db, personRef, [conversation.id])).get(conversation.id)
      return { lastReadAt: toTimestamp(mark?.at ?? at) }
    },

    archive: archiveConversation,
    unarchive: unarchiveConversation,
    delete: deleteConversation,
    addParticipant,
    removeParticipant: takeParticipantOut,
    updateRuntime: (input) => updateRuntime(input, deps),
    send: (input) => sendMessage(input, deps),
    events: (input) => listConversationEvents(input, deps),
  })
}

type List = HandlerInput<typeof conversationRoutes.list>

async function list({ db, caller, query }: List) {
  if (query.ids !== undefined) {
    const known: ConversationRow[] = []
    for (const row of await listConversationsByIds(db, caller.workspaceId, query.ids))
      if (await isConversationVisible(db, caller, row)) known.push(row)
    const shown = new Map((await presentConversations(db, caller, known)).map((each) => [each.id, each]))
    return batchOf(query.ids, (id) => shown.get(idFrom(id)))
  }
  const cursor = idCursorOf(query)
  const filter = await filterOf({ db, caller, query })
  const from = cursor === null ? null : await placeOf({ db, caller }, cursor)
  const rows = filter === null ? [] : await listConversations(db, from === null ? filter : { ...filter, from })
  const shown = new Map((await presentConversations(db, caller, rows)).map((each) => [each.id, each]))
  return idPageOf({
    rows,
    limit: query.limit,
    cursor,
    placeOf: (row) => encodeCursor([activityOf(row), row.id]),
    present: (row) => shown.get(row.id)!,
  })
}

/** Returns null when a filter names nothing that the caller can see, so that nothing matches. */
async function filterOf({ db, caller, query }: Pick<List, 'db' | 'caller' | 'query'>) {
  const filter: ConversationFilter = {
    workspaceId: caller.workspaceId,
    visibleTo: viewerOfConversations(caller),
    withArchived: query.archived === true,
    limit: query.limit,
    ...withoutUndefined({ q: query.q }),
  }
  if (query.taskId === 'none') filter.task = 'none'
  else if (query.taskId !== undefined) {
    const task = await lookUpTask(db, caller, query.taskId)
    if (task === null) return null
    filter.task = { id: task.id }
  }
  if (query.participantId !== undefined) {
    const participant = await lookUpParticipant(db, caller, query.participantId)
    if (participant === null) return null
    filter.participantRef = participant.id
  }
  return filter
}

const place = timeAndId(conversationId)

/**
 * Finds where a page starts. A `nextCursor` holds the place itself: its row may have moved to the top since, from where the next page would
 * repeat what was read. The id of a conversation stands for its place as of now.
 */
async function placeOf(
  { db, caller }: Pick<List, 'db' | 'caller'>,
  { id: sent, direction, param }: IdCursor,
): Promise<NonNullable<ConversationFilter['from']>> {
  const held = decodeCursor(sent, place)
  if (held !== null) return { at: held[0], id: held[1], direction }
  const [row] = await listConversationsByIds(db, caller.workspaceId, [sent])
  return row !== undefined && (await isConversationVisible(db, caller, row))
    ? { at: activityOf(row), id: row.id, direction }
    : fail('invalid_cursor', { param })
}
