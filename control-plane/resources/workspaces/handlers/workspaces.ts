import type { WorkspaceUuid } from '../../../../shared/lib/ids.ts'
import { changedRow } from '../../../db/changed-row.ts'
import { fail, failPlain } from '../../../../shared/api/errors.ts'
import type { BodyOf } from '../../../../shared/api/route.ts'
import { workspaceRoutes } from '../../../../shared/api/workspaces.ts'
import { databaseTroubleOf } from '../../../db/dialect.ts'
import type { World } from '../../../../shared/lib/world.ts'
import type { Db, Tx } from '../../../db/open.ts'
import { failElsewhere, type Caller } from '../../../http/callers.ts'
import { answer, implement, type HandlerInput, type ImplementedRoute } from '../../../http/implement.ts'
import { cancelRuns } from '../../../run/endings/cancel-runs.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { findRole } from '../../members/store.ts'
import { wholeList } from '../../../http/whole-list.ts'
import type { WorkspaceContent } from '../content.ts'
import { makeWorkspace } from '../steps/make.ts'
import { namedWorkspace, ownWorkspace } from '../lookup.ts'
import { presentMembership, presentWorkspace } from '../own/present.ts'
import { slugCandidates, slugFromName } from '../rules.ts'
import { claimSlug, findSlugOwner } from '../slug-store.ts'
import { findWorkspace, listMemberships, replaceWorkspace, type WorkspaceRow } from '../store.ts'
import { withoutUndefined } from '../../../../shared/lib/without-undefined.ts'

type Dependencies = Pick<ResourceDependencies, 'leaseMs'>

export function workspaceHandlers(deps: Dependencies, content: WorkspaceContent): ImplementedRoute[] {
  return implement(workspaceRoutes, {
    async current({ db, caller }) {
      return presentWorkspace(await ownWorkspace(db, caller))
    },

    create,
    bySlug,

    async get({ db, caller, params }) {
      return presentWorkspace(await namedWorkspace(db, caller, params.workspaceId))
    },

    update: (input) => update(input, deps, content),

    stats: ({ db, caller }) => content.count(db, caller),

    async userList({ db, caller }) {
      return wholeList((await listMemberships(db, caller.personUuid)).map(presentMembership))
    },
  })
}

async function create({ db, caller, world, body }: HandlerInput<typeof workspaceRoutes.create>) {
  const { name, slug: wanted, issuePrefix, ...settings } = body
  const slug = wanted ?? (await freeSlug(db, name))
  const { id } = await refusingTakenSlug(() =>
    makeWorkspace(db, world, { name, slug, issuePrefix, ownerUuid: caller.personUuid }),
  )
  const made = (await findWorkspace(db, id)) ?? fail('transient_conflict')
  const workspace = { ...made, ...changesOf(made, settings) }
  await replaceWorkspace(db, made, workspace)
  return answer(201, presentWorkspace(workspace))
}

/** A slug made from the name, with a number if it is taken. */
async function freeSlug(db: Db, name: string): Promise<string> {
  const slug = slugFromName(name)
  if (slug === null) fail('validation_error', { param: 'slug', message: 'The name gives no slug; send one.' })
  for (const candidate of slugCandidates(slug)) if ((await findSlugOwner(db, candidate)) === null) return candidate
  return failPlain('plain.workspace_slug_exists')
}

async function refusingTakenSlug<T>(write: () => Promise<T>): Promise<T> {
  try {
    return await write()
  } catch (error) {
    if (databaseTroubleOf(error) === 'duplicate') failPlain('plain.workspace_slug_exists')
    throw error
  }
}

async function bySlug({ db, caller, params, path }: HandlerInput<typeof workspaceRoutes.bySlug>) {
  const owner = await findSlugOwner(db, params.slug)
  const workspace = owner === null ? null : await findWorkspace(db, owner)
  if (workspace === null || !(await belongsTo(db, caller, workspace)))
    return fail('resource_not_found', { param: 'slug', message: 'You belong to no workspace with this slug.' })
  // A login token works in its own workspace only; a session may look at all workspaces of its person.
  const isElsewhere = workspace.id !== caller.workspaceId
  if (isElsewhere && caller.kind === 'person' && caller.via === 'login_token') failElsewhere(caller, 'slug')
  const { slug } = workspace
  if (slug === params.slug) return presentWorkspace(workspace)
  return answer(308, { slug }, { Location: path.slice(0, path.lastIndexOf('/') + 1) + slug })
}

async function belongsTo(db: Db, caller: Caller, workspace: WorkspaceRow): Promise<boolean> {
  if (workspace.id === caller.workspaceId) return true
  return caller.kind === 'person' && (await findRole(db, workspace.id, caller.personUuid)) !== null
}

async function update(
  { db, caller, world, params, body }: HandlerInput<typeof workspaceRoutes.update>,
  { leaseMs }: Dependencies,
  content: WorkspaceContent,
) {
  const before = await namedWorkspace(db, caller, params.workspaceId)
  const at = world.now()
  if (body.slug !== undefined && body.slug !== before.slug) {
    const isFree = await claimSlug(db, { slug: body.slug, workspaceId: before.id, at })
    if (!isFree) fail('slug_taken', { param: 'slug' })
  }
  const after = changedRow(before, changesOf(before, body), at)
  await replaceWorkspace(db, before, after)
  if (before.cloudEnabled && !after.cloudEnabled) await cancelCloudRuns(db, after.id, { world, leaseMs })
  if (after.monthlyBudgetCents !== before.monthlyBudgetCents) await content.budgetChanged(db, after, world)
  return presentWorkspace(after)
}

/** Cancels the cloud runs that wait; what a sandbox executes goes on to its end. */
const cancelCloudRuns = (tx: Tx, workspaceId: WorkspaceUuid, by: { world: World; leaseMs: number }): Promise<void> =>
  cancelRuns(
    tx,
    {
      workspaceId,
      subject: 'workspace',
      subjectId: workspaceId,
      extent: 'waiting_for_cloud',
      exitReason: 'cloud_disabled',
      reason: 'Cloud runs were turned off in this workspace.',
    },
    by,
  )

/** The settings that were sent; those of `idleCompaction` are merged one by one. */
function changesOf(before: WorkspaceRow, body: BodyOf<typeof workspaceRoutes.update>): Partial<WorkspaceRow> {
  const { idleCompaction, ...plain } = withoutUndefined(body)
  if (idleCompaction === undefined) return plain
  return { ...plain, idleCompaction: { ...before.idleCompaction, ...withoutUndefined(idleCompaction) } }
}
