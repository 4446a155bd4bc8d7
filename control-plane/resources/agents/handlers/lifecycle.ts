import type { FolderRef, PersonUuid } from '../../../../shared/lib/ids.ts'
import { agentLifecycleRoutes } from '../../../../shared/api/agent-lifecycle.ts'
import { fail } from '../../../../shared/api/errors.ts'
import type { ReplyOf } from '../../../../shared/api/route.ts'
import type { World } from '../../../../shared/lib/world.ts'
import type { Db, Tx } from '../../../db/open.ts'
import { cancelRuns } from '../../../run/endings/cancel-runs.ts'
import { hasRole, type PersonCaller } from '../../../http/callers.ts'
import { answer, implement, type HandlerInput, type ImplementedRoute } from '../../../http/implement.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { findFolder } from '../../folders/store.ts'
import { findMemberByReference } from '../../members/store.ts'
import { raisePlatformChange } from '../../platform-changes/steps/raise.ts'
import { closeBySystem } from '../../questions/steps/answer.ts'
import { listOpenQuestions } from '../../questions/store.ts'
import { isBeingUnassigned } from '../../tasks/unassignment-store.ts'
import type { WorkspaceRow } from '../../workspaces/store.ts'
import type { AuditAgent } from '../audit.ts'
import { changeableAgent, lookUpAgent, unknownAgent } from '../lookup.ts'
import { presentAgent } from '../present.ts'
import { acceptAgent } from '../steps/accept.ts'
import { copyOf, mayUseFolder, ownsOrAdministersAgent } from '../rules.ts'
import { insertAgent, type AgentRow } from '../store.ts'
import { needsWordOf } from '../trust-rules.ts'
import { cancelWaiting, runsOfAgent } from '../steps/own/waiting-runs.ts'
import { chooseHandle, refusingTakenHandle, shownAgent, storeAgent, workspaceOf } from '../steps/store-agent.ts'

type Dependencies = Pick<ResourceDependencies, 'catalog' | 'leaseMs'> & { audit: AuditAgent }

type Routes = typeof agentLifecycleRoutes

type Deleted = ReplyOf<Routes['delete']>

/** Unassigns the agent's open tasks with its deletion, and returns them. */
export type UnassignTasks = (
  tx: Tx,
  unassign: { agent: AgentRow; world: World },
) => Promise<{ tasks: Deleted['unassignedTasks']; hasMore: boolean }>

const noTasks: UnassignTasks = () => Promise.resolve({ tasks: [], hasMore: false })

export function agentLifecycleHandlers(deps: Dependencies, unassignTasks: UnassignTasks = noTasks): ImplementedRoute[] {
  return implement(agentLifecycleRoutes, {
    delete: (input) => remove(input, { ...deps, unassignTasks }),

    async restore({ db, caller, params, world }) {
      const before = (await lookUpAgent(db, caller, params.agentId)) ?? unknownAgent(params.agentId)
      if (!ownsOrAdministersAgent(before, caller)) fail('restore_forbidden')
      if (before.deletedAt === null) fail('not_deleted')
      if (await isBeingUnassigned(db, before.id))
        fail('transient_conflict', { message: 'Its tasks are still being unassigned. Try again.' })
      const { agent } = await storeAgent(db, { before, after: { ...before, deletedAt: null }, caller, world })
      return shownAgent(agent, { db, caller, world, catalog: deps.catalog })
    },

    clone: (input) => clone(input, deps),

    async transferOwner({ db, caller, params, body, world }) {
      const before = await changeableAgent(db, caller, params.agentId)
      if (!ownsOrAdministersAgent(before, caller)) fail('owner_transfer.forbidden')
      const param = 'newOwnerId'
      const owner = await findMemberByReference(db, caller.workspaceId, body.newOwnerId)
      if (owner === null) return fail('owner_transfer.user_not_found', { param })
      if (owner.id === before.ownerUuid) fail('owner_transfer.same_owner', { param })
      const now = world.now()
      const after: AgentRow = {
        ...before,
        ownerUuid: owner.id,
        transferredAt: needsWordOf(owner, caller) ? now : null,
        defaultFolderId: await folderOfNewOwner(db, before, { owner, caller }),
        // The agent's sessions are on devices of the old owner.
        sessionsResetAt: now,
      }
      const { agent } = await storeAgent(db, { before, after, caller, world })
      await cancelWaiting(db, agent, { reason: 'The agent was given to another owner.', world })
      return shownAgent(agent, { db, caller, world, catalog: deps.catalog })
    },

    async accept({ db, caller, params, world }) {
      const before = await changeableAgent(db, caller, params.agentId)
      if (before.ownerUuid !== caller.personUuid)
        fail('http_exception', { message: 'Only the owner of an agent agrees to have it.', param: 'agentId' })
      const agent = await acceptAgent(db, before, { caller, world })
      return shownAgent(agent, { db, caller, world, catalog: deps.catalog })
    },
  })
}

/** The new owner commands the folder's device: it must be theirs, or the default device that all command. */
async function folderOfNewOwner(
  db: Db,
  agent: AgentRow,
  { owner, caller }: { owner: { id: PersonUuid }; caller: PersonCaller },
): Promise<FolderRef | null> {
  if (agent.defaultFolderId === null) return null
  const folder = await findFolder(db, agent.workspaceId, agent.defaultFolderId)
  const { defaultDevice } = await workspaceOf(db, caller)
  return folder?.createdByUuid === owner.id || folder?.device === defaultDevice ? agent.defaultFolderId : null
}

/**
 * Deletes the agent. Its runs end as `agent_deleted`, and its questions are closed; later wakes get
 * `agent_tombstoned`, and its tokens are invalid.
 */
async function remove(input: HandlerInput<Routes['delete']>, deps: Dependencies & { unassignTasks: UnassignTasks }) {
  const { db, caller, params, world } = input
  const before = await changeableAgent(db, caller, params.agentId)
  if (caller.kind === 'agent') {
    const change = { caller, routeId: agentLifecycleRoutes.delete.id, params: { agentId: before.id } }
    return raisePlatformChange({ ...input, body: null }, change)
  }
  const now = world.now()
  const { agent } = await storeAgent(db, { before, after: { ...before, deletedAt: now }, caller, world })
  const reason = 'The agent was deleted.'
  const runs = { ...runsOfAgent(agent), extent: 'live', exitReason: 'agent_deleted', reason } as const
  const tx = db
  await cancelRuns(tx, runs, { world, leaseMs: deps.leaseMs })
  // Questions for which its runs stopped would hold their tasks and the steps of workflows until somebody answers in vain.
  for (const question of await listOpenQuestions(db, 'agent_id', [agent.id]))
    await closeBySystem(db, question, { reason: 'agent_deleted', world })
  const { tasks, hasMore } = await deps.unassignTasks(tx, { agent, world })
  const shown = await shownAgent(agent, { db, caller, world, catalog: deps.catalog })
  return { agent: shown, unassignedTasks: tasks, ...(hasMore && { hasMore }) }
}

async function clone(input: HandlerInput<Routes['clone']>, deps: Dependencies) {
  const { db, caller, params, body, world } = input
  const source = await changeableAgent(db, caller, params.agentId)
  if (caller.kind === 'agent') {
    const change = { caller, routeId: agentLifecycleRoutes.clone.id, params: { agentId: source.id } }
    return raisePlatformChange(input, change)
  }
  const workspace = await workspaceOf(db, caller)
  const agent = copyOf(source, {
    id: world.id('agt_'),
    uuid: world.uuid(),
    name: body.name,
    ownerUuid: caller.personUuid,
    keepsPermissions: hasRole(caller, 'admin'),
    now: world.now(),
  })
  agent.defaultFolderId = await folderFor(db, { agent, caller, workspace })
  agent.handle = await chooseHandle(db, agent)
  await refusingTakenHandle(() => insertAgent(db, agent))
  const audit = await deps.audit(db, { agent, workspace }, world.now())
  return answer(201, { ...presentAgent(agent, { workspace, catalog: deps.catalog, now: world.now() }), audit })
}

/** The folder of the source, if the copy may start in it, too. */
async function folderFor(
  db: Db,
  { agent, caller, workspace }: { agent: AgentRow; caller: PersonCaller; workspace: WorkspaceRow },
): Promise<FolderRef | null> {
  const folder = agent.defaultFolderId === null ? null : await findFolder(db, agent.workspaceId, agent.defaultFolderId)
  if (folder === null) return null
  return mayUseFolder({ folder, agent, caller, defaultDevice: workspace.defaultDevice }) ? folder.shortId : null
}
