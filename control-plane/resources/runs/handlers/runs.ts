import { idFrom, type RunId, type TaskId } from '../../../../shared/lib/ids.ts'
import { runId } from '../../../../shared/api/ids.ts'
import { batchOf, cursorOf, pageOf, timeAndId } from '../../../../shared/api/paging.ts'
import { fail } from '../../../../shared/api/errors.ts'
import { runRoutes, type RunDetail } from '../../../../shared/api/runs.ts'
import type { Db } from '../../../db/open.ts'
import { cancelRun } from '../../../run/endings/cancel-run.ts'
import { asked } from '../../../trust/askers.ts'
import { causeOfCaller, speakersOf } from '../cause.ts'
import { startRun } from '../../../run/wakes/start-run.ts'
import { actorOf, publicIdOf, type Caller } from '../../../http/callers.ts'
import { implement, type HandlerInput, type ImplementedRoute } from '../../../http/implement.ts'
import { withoutUndefined } from '../../../../shared/lib/without-undefined.ts'
import { lookUpAgent } from '../../agents/lookup.ts'
import { loadSpeaker } from '../../conversations/names.ts'
import { findAgent, listManagers } from '../../agents/store.ts'
import { holdsItsRun, isAsking } from '../../approvals/rules.ts'
import { listApprovals } from '../../approvals/store.ts'
import { listQuestions } from '../../questions/store.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { findTask, findTaskById } from '../../tasks/store.ts'
import { findDetails } from '../details-store.ts'
import { findFinalAnswer, listEventsBackward } from '../event-log.ts'
import { lookUpRun, readableRunAndAgent, unknownRun } from '../lookup.ts'
import { presentRunDetail, presentRuns } from '../steps/present.ts'
import { isRetriable, mayCancelRun, retryPrompt } from '../rules.ts'
import { listRuns, listRunsByIds, type RunFilter } from '../list-store.ts'
import { findRun, type RunRow } from '../store.ts'
import { workViewerOf } from '../../projects/work-visibility.ts'

type Dependencies = Pick<ResourceDependencies, 'leaseMs' | 'wakeContext'>

export function runHandlers(deps: Dependencies): ImplementedRoute[] {
  return implement(runRoutes, {
    list: (input) => list(input, deps),

    async get({ db, caller, params, query, world }) {
      const { run, agent } = await readableRunAndAgent(db, caller, params.runId)
      const detail = await presentRunDetail(db, run, { now: world.now(), leaseMs: deps.leaseMs, agent })
      return query.expand === undefined
        ? detail
        : { ...detail, ...(await expand(db, run, { parts: query.expand, caller })) }
    },

    async cancel(input) {
      const { db, caller, params, body, world } = input
      const { run } = await cancellableRun(db, caller, params.runId)
      const { leaseMs } = deps
      const reason = body.reason ?? null
      if (!(await cancelRun(db, run, { exitReason: 'interrupted', reason, world, leaseMs })))
        fail('run.not_cancellable')
      return presentRunDetail(db, (await findRun(db, run.id)) ?? run, { now: world.now(), leaseMs })
    },

    retry: (input) => retry(input, deps),
  })
}

const cursorKey = timeAndId(runId)

async function list({ db, caller, query, world }: HandlerInput<typeof runRoutes.list>, deps: Dependencies) {
  const moment = { now: world.now(), leaseMs: deps.leaseMs }
  const visibleTo = workViewerOf(caller)
  if (query.ids !== undefined) {
    const own = caller.kind === 'agent' ? caller.runId : ''
    const ids = query.ids.map((id) => (id === 'current' ? own : id))
    const rows = await listRunsByIds(
      db,
      caller.workspaceId,
      [...new Set(ids)].map((id) => idFrom<RunId>(id)),
      visibleTo,
    )
    const runs = new Map((await presentRuns(db, rows, moment)).map((run) => [run.id, run]))
    return batchOf(ids, (id) => runs.get(idFrom(id)))
  }
  const after = cursorOf(query, cursorKey)
  const agent = query.agent === undefined ? undefined : await lookUpAgent(db, caller, query.agent)
  // A filter that names nothing the caller can see, matches nothing.
  const taskId = query.task === undefined ? undefined : await taskIdOf(db, caller, query.task)
  const filter: RunFilter = {
    workspaceId: caller.workspaceId,
    ...(visibleTo === undefined ? {} : { visibleTo }),
    ...(agent == null ? {} : { agentRef: agent.id }),
    ...(taskId == null ? {} : { taskId }),
    ...(query.status === undefined ? {} : { statuses: query.status }),
    ...(query.triggerSource === undefined ? {} : { triggerSources: query.triggerSource }),
    ...(query.since === undefined ? {} : { since: Date.parse(query.since) }),
    ...(query.until === undefined ? {} : { until: Date.parse(query.until) }),
    ...(after === null ? {} : { before: { createdAt: after[0], id: after[1] } }),
    limit: query.limit,
  }
  const rows = agent === null || taskId === null ? [] : await listRuns(db, filter)
  const shown = await presentRuns(db, rows.slice(0, query.limit), moment)
  const byId = new Map(shown.map((run) => [run.id, run]))
  return pageOf({
    rows,
    limit: query.limit,
    keyOf: (run) => [run.createdAt, run.id],
    present: (run) => byId.get(run.id)!,
  })
}

/** The id of the task that a `tsk_` id, key or `current` (that of the calling run) names; null: it names none. */
async function taskIdOf(db: Db, caller: Caller, reference: string): Promise<TaskId | null> {
  if (reference !== 'current') return (await findTask(db, caller.workspaceId, reference))?.id ?? null
  return caller.kind === 'agent' ? ((await findRun(db, caller.runId))?.taskId ?? null) : null
}

const latestCount = 20

async function expand(db: Db, run: RunRow, { parts, caller }: { parts: readonly string[]; caller: Caller }) {
  const expanded: Pick<RunDetail, 'latestEvents' | 'transcriptRead'> = {}
  if (parts.includes('latestEvents')) {
    const range = { runId: run.id, beforeSeq: Number.MAX_SAFE_INTEGER, limit: latestCount }
    expanded.latestEvents = (await listEventsBackward(db, range)).events.reverse()
  }
  if (parts.includes('transcriptRead')) {
    const asked = isAsking(run.exitReason) ? await askedBy(db, run, caller) : null
    // A harness that is stopped to ask may call that an error of its own.
    const answer = asked === null ? await findFinalAnswer(db, run) : { text: asked, isError: false }
    expanded.transcriptRead = {
      finalAnswer: answer?.text ?? null,
      isError: answer?.isError === true || run.status === 'failed',
      eventCount: run.eventSeq,
    }
  }
  return expanded
}

/** Returns what the run stopped to ask a person, as far as the caller sees it; null: nothing. */
async function askedBy(db: Db, { workspaceId, id: runId }: RunRow, caller: Caller): Promise<string | null> {
  const filter = { workspaceId, runId, limit: mostAsked, ...withoutUndefined({ visibleTo: workViewerOf(caller) }) }
  const questions = (await listQuestions(db, filter)).filter(
    (each) => each.workflowRunId === null && each.waitUntil === null,
  )
  const approvals = (await listApprovals(db, filter)).filter(({ trigger }) => holdsItsRun(trigger))
  const asked = [...questions, ...approvals]
  const inOrder = asked.toSorted((a, b) => a.createdAt - b.createdAt).slice(-mostAsked)
  return inOrder.length === 0 ? null : inOrder.map(({ prompt }) => prompt).join('\n\n')
}

const mostAsked = 20

/** The run to cancel or retry. The owner of an agent above may, though the run's own agent is hidden from it. */
async function cancellableRun(db: Db, caller: Caller, reference: string) {
  const found = await lookUpRun(db, caller, reference)
  if (found === null) return unknownRun(reference)
  const managers = await listManagers(db, caller.workspaceId, found.agent?.reportingToUuid ?? null)
  if (mayCancelRun(found.run, caller, { agent: found.agent, managers })) return found
  return found.isVisible ? fail('run.cancel_forbidden') : unknownRun(reference)
}

async function retry({ db, caller, params, body }: HandlerInput<typeof runRoutes.retry>, deps: Dependencies) {
  const { run } = await cancellableRun(db, caller, params.runId)
  if (!isRetriable(run))
    fail('run.not_retriable', { message: `The run is ${run.status}; only a failed or cancelled one can be retried.` })
  const agent = await findAgent(db, run.agentRef)
  if (agent === null) return notDispatched('The agent of this run is gone.')
  const details = await findDetails(db, run.id)
  if (details?.spec.gate != null)
    fail('run.not_retriable', {
      message: 'The run does a gate of a workflow, whose program decides what is done next.',
    })
  const requestedByRef = publicIdOf(caller)
  const by = await loadSpeaker(db, caller.workspaceId, actorOf(caller))
  // A retry works on the same task, whose lock lets one run at a time work on it.
  const task = run.taskId === null ? null : await findTaskById(db, run.taskId)
  const answer = await startRun(
    db,
    {
      ...asked('manual', { caller: await causeOfCaller(db, caller) }, speakersOf(run)),
      agent,
      requestedByRef,
      prompt: retryPrompt(details?.prompt ?? null, { runId: run.id, reason: body.reason, by }),
      parent: run,
      task,
    },
    deps.wakeContext,
  )
  if (answer.kind === 'not_dispatched') {
    const { code, message } = answer
    return code === undefined ? notDispatched(message) : fail(code, { message })
  }
  return { runId: answer.runId }
}

const notDispatched = (message: string): never => fail('run.not_retriable', { status: 503, message })
