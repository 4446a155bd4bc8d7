import { agentRoutes, type AgentStatus } from '../../../../shared/api/agents.ts'
import { fail } from '../../../../shared/api/errors.ts'
import { agentId } from '../../../../shared/api/ids.ts'
import { timeAndId, beforeOf, pageByTime } from '../../../../shared/api/paging.ts'
import type { BodyOf } from '../../../../shared/api/route.ts'
import type { World } from '../../../../shared/lib/world.ts'
import { changedRow } from '../../../db/changed-row.ts'
import { cancelRuns } from '../../../run/endings/cancel-runs.ts'
import type { Caller, PersonCaller } from '../../../http/callers.ts'
import { answer, implement, type HandlerInput, type ImplementedRoute } from '../../../http/implement.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { raisePlatformChange } from '../../platform-changes/steps/raise.ts'
import { hashAgentMd } from '../agent-md.ts'
import type { AuditAgent } from '../audit.ts'
import { changeableAgent, lookUpAgent, lookUpAgents, readableAgent } from '../lookup.ts'
import { runsOfAgent } from '../steps/own/waiting-runs.ts'
import { presentAgent } from '../present.ts'
import { isHandleOf, mayMove, nextAgentStatuses, slugOf, viewerOfAgents, newAgentState } from '../rules.ts'
import { insertAgent, listAgents, type AgentRow, type ListedAgent } from '../store.ts'
import {
  checkFolder,
  checkManager,
  checkDefaultRepo,
  chooseHandle,
  refusingTakenHandle,
  shownAgent,
  storeAgent,
  withManagerById,
  workspaceOf,
} from '../steps/store-agent.ts'
import { withoutUndefined } from '../../../../shared/lib/without-undefined.ts'

type Dependencies = Pick<ResourceDependencies, 'catalog' | 'leaseMs'> & { audit: AuditAgent }

const agentCursor = timeAndId(agentId)

export function agentHandlers(deps: Dependencies): ImplementedRoute[] {
  return implement(agentRoutes, {
    list: (input) => list(input, deps),
    create: (input) => create(input, deps),
    async get({ db, caller, params, world }) {
      const agent = await readableAgent(db, caller, params.agentId)
      return shownAgent(agent, { db, caller, world, catalog: deps.catalog })
    },
    update: (input) => update(input, deps),
  })
}

async function list({ db, caller, query, world }: HandlerInput<typeof agentRoutes.list>, deps: Dependencies) {
  const workspace = await workspaceOf(db, caller)
  const view = { workspace, catalog: deps.catalog, now: world.now() }
  const present = (agent: ListedAgent) => presentAgent(agent, view)
  if (query.ids !== undefined) {
    const found = await lookUpAgents(db, caller, query.ids)
    const isShown = (agent: ListedAgent) => agent.deletedAt === null || caller.kind === 'person'
    const bySlot = found.map((agent) => (agent !== null && isShown(agent) ? present(agent) : null))
    return { object: 'list' as const, data: bySlot }
  }
  const withDeleted = query.status?.includes('deleted') ?? false
  if (withDeleted && caller.kind === 'agent') fail('list_deleted_forbidden', { param: 'status' })
  const statuses = query.status?.filter((status) => status !== 'deleted')
  const viewer = viewerOfAgents(caller)
  const rows = await listAgents(db, {
    workspaceId: caller.workspaceId,
    withDeleted,
    ...withoutUndefined({ statuses, role: query.role, q: query.q }),
    ...(viewer.seesAll ? {} : { visibleTo: viewer }),
    ...beforeOf(query, agentCursor),
    limit: query.limit,
  })
  return pageByTime(rows, query.limit, present)
}

async function create(input: HandlerInput<typeof agentRoutes.create>, deps: Dependencies) {
  const { db, caller, world, body } = input
  if (caller.kind === 'agent') {
    const asked = { ...input, body: await withManagerById(db, caller, body) }
    return raisePlatformChange(asked, { caller, routeId: agentRoutes.create.id, params: {} })
  }
  const workspace = await workspaceOf(db, caller)
  const agent = newAgent(body, caller, world)
  agent.handle = await chooseHandle(db, agent)
  agent.reportingToUuid = await checkManager(db, caller, { agentUuid: agent.uuid, reference: body.reportingTo ?? null })
  if (agent.defaultFolderId !== null)
    await checkFolder(db, caller, { agent, folderId: agent.defaultFolderId, workspace })
  if (agent.defaultRepoId !== null) await checkDefaultRepo(db, caller, { agent, repoId: agent.defaultRepoId })
  await refusingTakenHandle(() => insertAgent(db, agent))
  const audit = await deps.audit(db, { agent, workspace }, world.now())
  return answer(201, { ...presentAgent(agent, { workspace, catalog: deps.catalog, now: world.now() }), audit })
}

function newAgent(body: BodyOf<typeof agentRoutes.create>, caller: PersonCaller, world: World): AgentRow {
  const now = world.now()
  const agentMd = body.identityMd ?? ''
  return {
    id: world.id('agt_'),
    uuid: world.uuid(),
    workspaceId: caller.workspaceId,
    handle: '',
    name: body.name,
    role: body.role,
    description: body.description ?? null,
    status: 'active',
    model: body.model ?? null,
    backupModel: body.backupModel ?? null,
    reasoningEffort: body.reasoningEffort ?? null,
    sandboxSize: body.sandboxSize ?? null,
    harness: body.harness ?? null,
    fallbackHarness: body.fallbackHarness ?? null,
    environment: body.environment,
    maxTurns: body.maxTurns ?? null,
    command: body.command ?? null,
    protocol: body.protocol ?? null,
    skillFolders: body.skillFolders ?? null,
    defaultFolderId: body.defaultFolderId ?? null,
    defaultRepoId: body.defaultRepoId ?? null,
    ownerUuid: caller.personUuid,
    visibility: body.visibility,
    reportingToUuid: null,
    wakeOnAssignment: body.wakeOnAssignment,
    wakeOnHook: body.wakeOnHook,
    toolPermissionMode: body.toolPermissionMode ?? null,
    tools: { allow: [], ask: [], deny: [] },
    capabilities: [],
    agentMd,
    agentMdHash: hashAgentMd(agentMd),
    agentMdByUuid: caller.personUuid,
    monthlyBudgetCents: body.monthlyBudgetCents ?? null,
    ...newAgentState,
    createdAt: now,
    updatedAt: now,
  }
}

type Update = HandlerInput<typeof agentRoutes.update>

async function update(input: Update, deps: Dependencies) {
  const { db, caller, world, body, params } = input
  const before = await changeableAgent(db, caller, params.agentId)
  if (caller.kind === 'agent') {
    if (body.identityMd !== undefined) fail('identity_write_forbidden', { param: 'identityMd' })
    const asked = { ...input, body: await withManagerById(db, caller, body) }
    if (await changesNothing(asked, before)) return withAudit(input, before, deps)
    return raisePlatformChange(asked, { caller, routeId: agentRoutes.update.id, params: { agentId: before.id } })
  }
  const workspace = await workspaceOf(db, caller)
  if (body.status !== undefined) checkStatus(before.status, body.status)
  if (body.defaultFolderId !== undefined && body.defaultFolderId !== before.defaultFolderId)
    await checkFolder(db, caller, { agent: before, folderId: body.defaultFolderId, workspace })
  if (body.defaultRepoId !== undefined && body.defaultRepoId !== before.defaultRepoId)
    await checkDefaultRepo(db, caller, { agent: before, repoId: body.defaultRepoId })
  const after = { ...before, ...(await changesOf(input, { before, caller })) }
  const { agent } = await storeAgent(db, { before, after, caller, world })
  if (before.status === 'active' && agent.status !== 'active') await pauseRuns(input, agent, deps)
  return withAudit(input, agent, deps)
}

async function withAudit({ db, caller, world }: Update, agent: AgentRow, deps: Dependencies) {
  const workspace = await workspaceOf(db, caller)
  const audit = await deps.audit(db, { agent, workspace }, world.now())
  return { ...presentAgent(agent, { workspace, catalog: deps.catalog, now: world.now() }), audit }
}

/** Returns whether the row is so already: nobody is asked to approve that. */
async function changesNothing({ db, caller, body }: Pick<Update, 'db' | 'caller' | 'body'>, before: AgentRow) {
  const { reportingTo, identityMd: _, ...plain } = withoutUndefined(body)
  const manager = reportingTo == null ? null : await lookUpAgent(db, caller, reportingTo)
  const changes = { ...plain, ...(reportingTo !== undefined && { reportingToUuid: manager?.uuid ?? null }) }
  return changedRow(before, changes, before.updatedAt) === before
}

/** Cancels waiting runs of an agent that takes no wakes any more; running ones go on. */
async function pauseRuns({ db, world }: Update, agent: AgentRow, deps: Dependencies): Promise<void> {
  const reason = `${agent.name} is ${agent.status}; only an active agent starts runs.`
  const runs = { ...runsOfAgent(agent), extent: 'waiting', exitReason: 'agent_paused', reason } as const
  await cancelRuns(db, runs, { world, leaseMs: deps.leaseMs })
}

function checkStatus(from: AgentStatus, to: AgentStatus): void {
  if (mayMove(from, to)) return
  const allowedValues = nextAgentStatuses(from)
  const message =
    allowedValues.length === 0 ? `An agent that is ${from} stays so.` : `From ${from} the status cannot become ${to}.`
  fail('invalid_status_transition', { param: 'status', allowedValues, message })
}

async function changesOf(
  { db, body }: Update,
  { before, caller }: { before: AgentRow; caller: Caller },
): Promise<Partial<AgentRow>> {
  const { reportingTo, identityMd, name, ...plain } = body
  const changes: Partial<AgentRow> = withoutUndefined(plain)
  if (name !== undefined) {
    changes.name = name
    const slug = slugOf(name)
    const keeps = slug === '' ? before.handle === before.id : isHandleOf(before.handle, slug)
    if (!keeps) changes.handle = await chooseHandle(db, { ...before, name })
  }
  if (reportingTo !== undefined)
    changes.reportingToUuid = await checkManager(db, caller, { agentUuid: before.uuid, reference: reportingTo })
  if (identityMd !== undefined) {
    changes.agentMd = identityMd
    changes.agentMdHash = hashAgentMd(identityMd)
  }
  return changes
}
