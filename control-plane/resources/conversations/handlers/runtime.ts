import { hasPrefix } from '../../../../shared/lib/ids.ts'
import { isDeepStrictEqual } from 'node:util'
import { actorOf } from '../../../http/callers.ts'
import type { conversationRoutes } from '../../../../shared/api/conversations.ts'
import { fail } from '../../../../shared/api/errors.ts'
import type { Db } from '../../../db/open.ts'
import type { HandlerInput } from '../../../http/implement.ts'
import { listAgentsByIds } from '../../agents/store.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { listLiveOfConversation } from '../../runs/live-store.ts'
import { findWorkspace } from '../../workspaces/store.ts'
import { heldConversation, readableConversation } from '../lookup.ts'
import { isParticipant, listParticipants } from '../participant-store.ts'
import { presentDetail } from '../present.ts'
import { capabilitiesOf } from '../own/rules.ts'
import { checkRuntime, type Runtime } from '../runtime.ts'
import type { ConversationRow } from '../store.ts'
import { storeConversation } from '../own/store-conversation.ts'
import { withoutUndefined } from '../../../../shared/lib/without-undefined.ts'

/** Changes the runtime for the next turn, which begins a fresh harness session. */
export async function updateRuntime(
  { db, caller, params, body, world }: HandlerInput<typeof conversationRoutes.updateRuntime>,
  deps: Pick<ResourceDependencies, 'catalog'>,
) {
  const seen = await readableConversation(db, caller, params.id)
  const isIn = await isParticipant(db, seen.id, actorOf(caller))
  if (!capabilitiesOf(seen, { caller, isIn }).canEdit)
    fail('not_authorized', { message: 'Only who is in it, or a workspace admin, changes its runtime.' })
  // Turns begin under the same lock, so none begins between the check and the change.
  const before = await heldConversation(db, seen.id)
  const [live] = await listLiveOfConversation(db, { conversationId: before.id })
  if (live !== undefined) fail('conversation_busy', { details: { runId: live.id } })
  const { modelId, harness, reasoningEffort, speed } = before
  const runtime: Runtime = { modelId, harness, reasoningEffort, speed, ...withoutUndefined(body) }
  checkRuntime(runtime, await agentModels(db, before), deps.catalog)
  const isSame = isDeepStrictEqual(runtime, { modelId, harness, reasoningEffort, speed })
  const changes = isSame ? {} : { ...runtime, runtimeChangedAt: world.now() }
  const conversation = await storeConversation(db, world, { before, changes })
  return presentDetail(db, caller, { conversation, include: ['runtime'] })
}

/** The models of the conversation's agents when nothing is chosen. */
async function agentModels(db: Db, { id, workspaceId }: ConversationRow): Promise<string[]> {
  const participants = (await listParticipants(db, [id])).get(id) ?? []
  const agentRefs = participants.flatMap(({ id: one }) => (hasPrefix(one, 'agt_') ? [one] : []))
  const workspace = await findWorkspace(db, workspaceId)
  const models = (await listAgentsByIds(db, agentRefs)).map((agent) => agent.model ?? workspace?.defaultModel ?? null)
  return [...new Set(models)].filter((model) => model !== null)
}
