import type { AutomationId } from '../../../../shared/lib/ids.ts'
import { changedRow } from '../../../db/changed-row.ts'
import { automationRoutes, type TriggerBody } from '../../../../shared/api/automations.ts'
import { fail } from '../../../../shared/api/errors.ts'
import { automationId, firedId } from '../../../../shared/api/ids.ts'
import { timeAndId, beforeOf, pageByTime } from '../../../../shared/api/paging.ts'
import type { Db } from '../../../db/open.ts'
import { causeOfCaller } from '../../runs/cause.ts'
import { publicIdOf, type Caller } from '../../../http/callers.ts'
import { answer, implement, type HandlerInput, type ImplementedRoute } from '../../../http/implement.ts'
import { lookUpAgent } from '../../agents/lookup.ts'
import { viewerOfAgents } from '../../agents/rules.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { isBound } from '../../repos/binding-store.ts'
import { presentRuns } from '../../runs/steps/present.ts'
import { listRunsByIds } from '../../runs/list-store.ts'
import { listFiredRuns, listSkips } from '../fire-store.ts'
import { fire, presentFire } from '../steps/fire.ts'
import { hookHandler } from './hook.ts'
import { agentToWake, lockedAutomation, readableAutomation } from '../own/lookup.ts'
import { presentAutomations, presentOne, presentSkip } from '../own/present.ts'
import { isMember } from '../../members/store.ts'
import { reachable, statusAfter, type MoveName } from '../own/rules.ts'
import { insertAutomation, listAutomations, replaceAutomation, type AutomationRow } from '../store.ts'
import { changedAutomation, newAutomation, newHookToken, automationWithStatus, type Written } from './body.ts'
import { withoutUndefined } from '../../../../shared/lib/without-undefined.ts'
import { workViewerOf } from '../../projects/work-visibility.ts'

type Dependencies = Pick<
  ResourceDependencies,
  'catalog' | 'isGithubInstalled' | 'leaseMs' | 'publicUrl' | 'wakeContext'
>

export function automationHandlers(deps: Dependencies): ImplementedRoute[] {
  return implement(automationRoutes, {
    async create({ db, caller, body, world }) {
      const agentRef = await agentToWake(db, caller, body.agentId)
      const isGithubInstalled = await isReachable(deps, caller, { db, body })
      const causedByUuid = await causeOfCaller(db, caller)
      const written = newAutomation(body, { caller, world, agentRef, isGithubInstalled, causedByUuid })
      await insertAutomation(db, written.row)
      return answer(201, await presentWritten(db, written, deps))
    },

    list,

    allRuns: (input) => firedRuns(input, { deps }),

    async get({ db, caller, params }) {
      return presentOne(db, await readableAutomation(db, caller, params.automationId))
    },

    async update({ db, caller, params, body, world }) {
      const before = await lockedAutomation(db, caller, params.automationId)
      const agentRef = body.agentId === undefined ? before.agentRef : await agentToWake(db, caller, body.agentId)
      const isGithubInstalled = await isReachable(deps, caller, { db, body })
      const causedByUuid = await causeOfCaller(db, caller)
      const written = changedAutomation(before, body, {
        caller,
        world,
        agentRef,
        isGithubInstalled,
        causedByUuid,
      })
      const row = await takenOver(db, caller, { before, after: written.row })
      const { updatedAt, ...changes } = row
      const after = changedRow(before, changes, updatedAt)
      await replaceAutomation(db, before, after)
      return presentWritten(db, { ...written, row: after }, deps)
    },

    pause: (input) => move(input, 'pause'),
    resume: (input) => move(input, 'resume'),
    archive: (input) => move(input, 'archive'),
    unarchive: (input) => move(input, 'unarchive'),

    async rotate({ db, caller, params, world }) {
      const before = await lockedAutomation(db, caller, params.automationId)
      if (before.triggerType !== 'webhook') fail('not_a_webhook_trigger')
      const { token, tokenHash } = newHookToken(world)
      // Whoever has the new address decides when it fires, and with what.
      const causedByUuid = await causeOfCaller(db, caller)
      const row = { ...before, tokenHash, causedByUuid, updatedAt: world.now() }
      await replaceAutomation(db, before, row)
      return presentWritten(db, { row, token }, deps)
    },

    run: (input) => runByHand(input, deps),

    async runs(input) {
      const { id } = await readableAutomation(input.db, input.caller, input.params.automationId)
      return firedRuns(input, { deps, automationId: id })
    },

    skips,
    hook: (input) => hookHandler(input, deps),
  })
}

const presentWritten = (db: Db, { row, token }: Written, deps: Pick<ResourceDependencies, 'publicUrl'>) =>
  presentOne(db, row, token === null ? undefined : `${deps.publicUrl()}/api/v1/automation-hooks/${token}`)

/** Returns whether the server is connected to GitHub, and the operator bound the trigger's repository to this workspace. */
async function isReachable(
  { isGithubInstalled }: Dependencies,
  { workspaceId }: Caller,
  { db, body }: { db: Db; body: { trigger?: TriggerBody | undefined } },
): Promise<boolean> {
  const repo = body.trigger?.repo
  return isGithubInstalled && (repo === undefined || (await isBound(db, workspaceId, repo)))
}

const automationCursor = timeAndId(automationId)
const firedCursor = timeAndId(firedId)

async function list({ db, caller, query }: HandlerInput<typeof automationRoutes.list>) {
  const place = beforeOf(query, automationCursor)
  const agent = query.agentId === undefined ? undefined : await lookUpAgent(db, caller, query.agentId)
  // A filter that names nothing visible matches nothing.
  const rows =
    agent === null
      ? []
      : await listAutomations(db, {
          workspaceId: caller.workspaceId,
          viewer: viewerOfAgents(caller),
          ...withoutUndefined({ statuses: query.status, agentRef: agent?.id, q: query.q }),
          ...place,
          limit: query.limit,
        })
  const shown = new Map((await presentAutomations(db, rows)).map((each) => [each.id, each]))
  return pageByTime(rows, query.limit, (row) => shown.get(row.id)!)
}

type Move = HandlerInput<(typeof automationRoutes)[MoveName]>

async function move({ db, caller, params, world }: Move, name: MoveName) {
  const before = await lockedAutomation(db, caller, params.automationId)
  const status = statusAfter(name, before.status)
  if (status === null)
    return fail('invalid_status_transition', {
      message: `An automation that is ${before.status} cannot ${name}.`,
      allowedValues: reachable(before.status),
    })
  if (status === before.status) return presentOne(db, before)
  const after = await takenOver(db, caller, { before, after: automationWithStatus(before, status, world) })
  await replaceAutomation(db, before, after)
  return presentOne(db, after)
}

/** Whoever resumes an automation that was paused because its person left is responsible for it from then on. */
async function takenOver(
  db: Db,
  caller: Caller,
  { before, after }: { before: AutomationRow; after: AutomationRow },
): Promise<AutomationRow> {
  const { workspaceId, causedByUuid } = after
  if (before.status === 'active' || after.status !== 'active' || causedByUuid === null) return after
  if (await isMember(db, workspaceId, causedByUuid)) return after
  return { ...after, causedByUuid: await causeOfCaller(db, caller) }
}

async function runByHand({ db, caller, params }: HandlerInput<typeof automationRoutes.run>, deps: Dependencies) {
  const automation = await lockedAutomation(db, caller, params.automationId)
  if (automation.workflow !== null) fail('workflow_needs_github_event')
  const requestedByRef = publicIdOf(caller)
  const cause = { triggerSource: 'manual', requestedByRef, prompt: automation.prompt } as const
  const outcome = await fire(db, { automation, cause }, deps.wakeContext)
  if (outcome.kind === 'repeated') throw new Error('a fire by hand has no occasion')
  return presentFire(outcome)
}

/** Lists the runs of one automation, or of all. */
async function firedRuns(
  { db, caller, query, world }: HandlerInput<typeof automationRoutes.allRuns | typeof automationRoutes.runs>,
  { deps, automationId }: { deps: Dependencies; automationId?: AutomationId },
) {
  const rows = await listFiredRuns(db, {
    workspaceId: caller.workspaceId,
    ...withoutUndefined({ automationId, statuses: query.status, visibleTo: workViewerOf(caller) }),
    ...beforeOf(query, firedCursor),
    limit: query.limit,
  })
  const runs = await listRunsByIds(
    db,
    caller.workspaceId,
    rows.slice(0, query.limit).map(({ runId }) => runId),
  )
  const shown = await presentRuns(db, runs, { now: world.now(), leaseMs: deps.leaseMs })
  const byId = new Map(shown.map((run) => [run.id, run]))
  return pageByTime(rows, query.limit, (row) => byId.get(row.runId)!)
}

async function skips({ db, caller, params, query }: HandlerInput<typeof automationRoutes.skips>) {
  const { id } = await readableAutomation(db, caller, params.automationId)
  const { limit } = query
  return pageByTime(await listSkips(db, id, { limit, ...beforeOf(query, firedCursor) }), limit, presentSkip)
}
