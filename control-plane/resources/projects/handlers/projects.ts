import type { AgentUuid } from '../../../../shared/lib/ids.ts'
import { changedRow } from '../../../db/changed-row.ts'
import { fail } from '../../../../shared/api/errors.ts'
import { uuid } from '../../../../shared/api/ids.ts'
import { timeAndId, beforeOf, pageByTime } from '../../../../shared/api/paging.ts'
import { projectRoutes } from '../../../../shared/api/projects.ts'
import type { BodyOf } from '../../../../shared/api/route.ts'
import type { World } from '../../../../shared/lib/world.ts'
import { databaseTroubleOf } from '../../../db/dialect.ts'
import type { Db } from '../../../db/open.ts'
import type { Caller } from '../../../http/callers.ts'
import { answer, implement, type HandlerInput, type ImplementedRoute } from '../../../http/implement.ts'
import { lookUpAgent, readableAgent } from '../../agents/lookup.ts'
import { findMemberByReference } from '../../members/store.ts'
import { ownWorkspace } from '../../workspaces/lookup.ts'
import { liveProject, unknownProject, visibleProject } from '../lookup.ts'
import { presentConfig, presentProject, presentProjectSummary } from '../own/present.ts'
import { decidesWhoSees, ownsOrAdministersProject, projectViewerOf } from '../rules.ts'
import {
  insertGrant,
  insertProject,
  isPrefixTaken,
  listProjects,
  replaceProject,
  type ProjectFilter,
  type ProjectRow,
} from '../store.ts'
import { withoutUndefined } from '../../../../shared/lib/without-undefined.ts'

export function projectHandlers(): ImplementedRoute[] {
  return implement(projectRoutes, {
    list,
    create,

    async get({ db, caller, params, query }) {
      const project = await visibleProject(db, caller, params.projectId)
      const isShown = project.deletedAt === null || (query.includeDeleted === true && caller.kind === 'person')
      return isShown ? presentProject(project) : unknownProject()
    },

    async update(input) {
      const { db, caller, params, body } = input
      const before = await liveProject(db, caller, params.projectId)
      const { name, description, visibility } = body
      const changes = withoutUndefined({ name, description: description === null ? '' : description, visibility })
      return presentProject(await change(input, { before, changes }))
    },

    async delete({ db, caller, params, world }) {
      const before = await liveProject(db, caller, params.projectId)
      await store(db, world, { before, changes: { deletedAt: world.now() } })
    },

    async restore({ db, caller, params, world }) {
      const before = await visibleProject(db, caller, params.projectId)
      if (!ownsOrAdministersProject(before, caller)) fail('restore_forbidden')
      if (before.deletedAt === null) fail('not_deleted')
      return presentProject(await store(db, world, { before, changes: { deletedAt: null } }))
    },

    async config({ db, caller, params }) {
      return presentConfig(await liveProject(db, caller, params.projectId))
    },

    async updateConfig(input) {
      const { db, caller, params, body } = input
      const before = await liveProject(db, caller, params.projectId)
      const { status, leadAgentId, repoUrl } = body
      const changes = {
        ...withoutUndefined({ status, repoUrl }),
        ...(leadAgentId === undefined ? {} : { leadAgentUuid: await leadOf(db, caller, leadAgentId) }),
      }
      return presentConfig(await change(input, { before, changes }))
    },

    transferOwner,
    ofAgent,
  })
}

const projectCursor = timeAndId(uuid)

async function list({ db, caller, query }: HandlerInput<typeof projectRoutes.list>) {
  const withDeleted = query.status?.includes('deleted') ?? false
  if (withDeleted && caller.kind === 'agent') fail('list_deleted_forbidden', { param: 'status' })
  const lead = query.lead === undefined ? undefined : await lookUpAgent(db, caller, query.lead)
  const statuses = query.status?.filter((status) => status !== 'deleted')
  // A filter that names nothing visible matches nothing.
  if (lead === null) return pageFor(query, async () => [])
  return pageFor(query, (page) =>
    listProjects(db, {
      workspaceId: caller.workspaceId,
      withDeleted,
      visibleTo: projectViewerOf(caller),
      ...withoutUndefined({ statuses, leadAgentUuid: lead?.uuid, q: query.q }),
      ...page,
    }),
  )
}

async function ofAgent({ db, caller, params, query }: HandlerInput<typeof projectRoutes.ofAgent>) {
  const agent = await readableAgent(db, caller, params.agentId)
  return pageFor(query, (page) =>
    listProjects(db, {
      workspaceId: caller.workspaceId,
      visibleTo: projectViewerOf(caller),
      grantedTo: { agentRef: agent.id, agentUuid: agent.uuid },
      ...page,
    }),
  )
}

/** Returns one page of the rows of `read`, as summaries. */
async function pageFor(
  query: { limit: number; after?: string | undefined; cursor?: string | undefined },
  read: (page: Pick<ProjectFilter, 'before' | 'limit'>) => Promise<ProjectRow[]>,
) {
  const { limit } = query
  return pageByTime(await read({ limit, ...beforeOf(query, projectCursor) }), limit, presentProjectSummary)
}

async function create({ db, caller, world, body }: HandlerInput<typeof projectRoutes.create>) {
  if (body.prefix != null) await checkPrefix(db, caller, body.prefix)
  const project = newProject(body, { caller, world, leadAgentUuid: await leadOf(db, caller, body.leadAgentId ?? null) })
  try {
    await insertProject(db, project)
  } catch (error) {
    // The prefix was free when it was looked up, so another write came in between.
    if (databaseTroubleOf(error) === 'duplicate') fail('duplicate_prefix', { param: 'prefix', cause: error })
    throw error
  }
  // An agent keeps seeing the projects it created.
  if (caller.kind === 'agent')
    await insertGrant(db, { projectId: project.id, agentRef: caller.agentRef, createdAt: project.createdAt })
  return answer(201, presentProject(project))
}

async function checkPrefix(db: Db, caller: Caller, prefix: string): Promise<void> {
  const param = 'prefix'
  const { issuePrefix } = await ownWorkspace(db, caller)
  if (prefix === issuePrefix) fail('prefix_reserved', { param })
  if (await isPrefixTaken(db, caller.workspaceId, prefix)) fail('duplicate_prefix', { param })
}

/** UUID of the agent that a reference names. */
async function leadOf(db: Db, caller: Caller, reference: string | null): Promise<AgentUuid | null> {
  if (reference === null) return null
  const agent = await lookUpAgent(db, caller, reference)
  return agent === null || agent.deletedAt !== null ? fail('agent_not_found', { param: 'leadAgentId' }) : agent.uuid
}

function newProject(
  body: BodyOf<typeof projectRoutes.create>,
  made: { caller: Caller; world: World; leadAgentUuid: AgentUuid | null },
): ProjectRow {
  const { caller, world } = made
  const now = world.now()
  return {
    id: world.uuid(),
    workspaceId: caller.workspaceId,
    name: body.name,
    description: body.description ?? '',
    status: 'active',
    prefix: body.prefix ?? null,
    leadAgentUuid: made.leadAgentUuid,
    ownerUuid: caller.kind === 'person' ? caller.personUuid : null,
    visibility: body.visibility,
    repoUrl: body.repoUrl ?? null,
    deletedAt: null,
    version: 1,
    createdAt: now,
    updatedAt: now,
  }
}

/** Writes what the caller changes. Agents that were let into a private project neither open it nor let others in. */
async function change(
  { db, caller, world }: { db: Db; caller: Caller; world: World },
  write: { before: ProjectRow; changes: Partial<ProjectRow> },
): Promise<ProjectRow> {
  if (decidesWhoSees(write.before, write.changes) && !ownsOrAdministersProject(write.before, caller))
    fail('http_exception', { message: "Only the project's owner and workspace admins decide who sees it." })
  return store(db, world, write)
}

/** Writes the changed project. Fails with `transient_conflict` when somebody else wrote in between. */
async function store(
  db: Db,
  world: World,
  { before, changes }: { before: ProjectRow; changes: Partial<ProjectRow> },
): Promise<ProjectRow> {
  const after = changedRow(before, changes, world.now())
  await replaceProject(db, before, after)
  return after
}

async function transferOwner({ db, caller, params, body, world }: HandlerInput<typeof projectRoutes.transferOwner>) {
  const before = await liveProject(db, caller, params.projectId)
  if (!ownsOrAdministersProject(before, caller)) fail('owner_transfer.forbidden')
  const param = 'newOwnerId'
  const owner = await findMemberByReference(db, caller.workspaceId, body.newOwnerId)
  if (owner === null) return fail('owner_transfer.user_not_found', { param })
  if (owner.id === before.ownerUuid) fail('owner_transfer.same_owner', { param })
  return presentProject(await store(db, world, { before, changes: { ownerUuid: owner.id } }))
}
