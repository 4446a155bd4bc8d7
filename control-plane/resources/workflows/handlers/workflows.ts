import type { WorkflowRunId } from '../../../../shared/lib/ids.ts'
import { changedRow } from '../../../db/changed-row.ts'
import { fail } from '../../../../shared/api/errors.ts'
import { toTimestamp, workflowRunId } from '../../../../shared/api/ids.ts'
import { beforeOf, cursorOf, pageByTime, pageOf, timeAndId } from '../../../../shared/api/paging.ts'
import { workflowName } from '../../../../shared/api/workflow-words.ts'
import { workflowRoutes } from '../../../../shared/api/workflows.ts'
import { withoutUndefined } from '../../../../shared/lib/without-undefined.ts'
import { z } from 'zod'
import type { Db } from '../../../db/open.ts'
import { publicIdOf, type Caller } from '../../../http/callers.ts'
import { answer, implement, prepared, type HandlerInput, type ImplementedRoute } from '../../../http/implement.ts'
import { causeOfCaller } from '../../runs/cause.ts'
import { failureOf, finishWorkflowRun } from '../../../workflows/advance/finish.ts'
import type { BuiltIn } from '../../../workflows/catalog/catalog.ts'
import type { CheckedProgram } from '../../../workflows/program/check.ts'
import { seesAgent } from '../../agents/lookup.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { workViewerOf } from '../../projects/work-visibility.ts'
import { presentWorkflow, presentWorkflowRuns, presentWorkflows, runActivity } from '../own/present.ts'
import { fittingRuns, mayCancelWorkflowRun, mayChangeWorkflow } from '../rules.ts'
import { countCalls } from '../call-store.ts'
import {
  findWorkflowRunInWorkspace,
  listWorkflowRuns,
  lockWorkflowRun,
  seesWorkflowRun,
  type WorkflowRunRow,
} from '../run-store.ts'
import {
  findWorkflow,
  insertWorkflow,
  listWorkflows,
  lockWorkflow,
  replaceWorkflow,
  type WorkflowRow,
} from '../store.ts'
import { builtIns, builtInsIfAny, presentBuiltIn, presentEntry } from './catalog.ts'
import { checkedProgram } from './check.ts'
import { startWorkflow } from './start.ts'

type Dependencies = Pick<ResourceDependencies, 'costly' | 'engine' | 'leaseMs' | 'workflowCatalog'>
type Routes = typeof workflowRoutes

export function workflowHandlers(deps: Dependencies): ImplementedRoute[] {
  return implement(workflowRoutes, {
    start: prepared<Routes['start'], BuiltIn | null>({
      before: async ({ body }) => (await builtInsIfAny(deps)).find(({ meta }) => meta.name === body.workflow) ?? null,
      handle: (input, builtIn) => startWorkflow(input, { ...deps, builtIn }),
    }),
    runs,

    async run({ db, caller, params }) {
      return shown({ db, caller }, await visibleRun(db, caller, params.workflowRunId))
    },

    cancel: (input) => cancel(input, deps),

    async catalog() {
      const entries = await builtIns(deps, 'workflows_catalog_unavailable')
      return { object: 'list' as const, data: entries.map(presentEntry) }
    },

    async source({ query }) {
      const known = await builtIns(deps, 'workflow_source_unavailable')
      const found = known.find(({ meta }) => meta.name === query.workflow)
      if (found === undefined)
        return fail('resource_not_found', { param: 'workflow', message: 'There is no built-in program of this name.' })
      return { object: 'workflow_source' as const, name: found.meta.name, source: found.source }
    },

    list: (input) => list(input, deps),

    create: prepared<Routes['create'], CheckedProgram>({
      before: async ({ caller, body }) => {
        const program = await checkedProgram(body.source, { caller, ...deps })
        const { name } = program.meta
        if ((await builtInsIfAny(deps)).some(({ meta }) => meta.name === name))
          failAtName('workflow_name_taken', program, `${name} is a built-in program.`)
        return program
      },
      handle: create,
    }),

    async get({ db, caller, params }) {
      return presentWorkflow(db, caller, (await named(db, caller, params.name)) ?? unknownWorkflow())
    },

    update: prepared<Routes['update'], CheckedProgram>({
      before: async ({ caller, params, body, db }) => {
        await checkSeesAuthor(db, caller, changeable(await named(db, caller, params.name), caller))
        return checkedProgram(body.source, { caller, ...deps })
      },
      handle: update,
    }),

    async retire({ db, caller, params, world }) {
      const before = changeable(await lockWorkflow(db, caller.workspaceId, params.name), caller)
      if (before.retiredAt !== null) return presentWorkflow(db, caller, before)
      const now = world.now()
      const after = { ...before, retiredAt: now, updatedAt: now }
      await replaceWorkflow(db, before, after)
      return presentWorkflow(db, caller, after)
    },
  })
}

const named = (db: HandlerInput<Routes['get']>['db'], caller: Caller, name: string) =>
  findWorkflow(db, caller.workspaceId, name)

const unknownWorkflow = () =>
  fail('resource_not_found', { param: 'name', message: 'There is no workflow with this name in this workspace.' })
const unknownRun = () =>
  fail('resource_not_found', { param: 'workflowRunId', message: 'There is no such run of a workflow.' })

/** A run on a task is seen by who sees the task, by who started it and by the agent that does its steps. */
async function visibleRun(db: Db, caller: Caller, id: WorkflowRunId): Promise<WorkflowRunRow> {
  const run = await findWorkflowRunInWorkspace(db, caller.workspaceId, id)
  const viewer = workViewerOf(caller)
  const isSeen = run !== null && (viewer === undefined || (await seesWorkflowRun(db, viewer, id)))
  return isSeen ? run : unknownRun()
}

function changeable(row: WorkflowRow | null, caller: Caller): WorkflowRow {
  if (row === null) return unknownWorkflow()
  if (!mayChangeWorkflow(row, caller))
    fail('not_permitted', { param: 'name', message: 'An agent changes and retires only workflows that it wrote.' })
  return row
}

/** The author does the steps that name no agent: who may not wake it gives it no prompts in this way either. */
async function checkSeesAuthor(db: Db, caller: Caller, { authorAgentRef }: WorkflowRow): Promise<void> {
  if (!(await seesAgent(db, caller, authorAgentRef)))
    fail('not_permitted', {
      param: 'name',
      message: 'An agent that you do not see wrote this workflow, and does its steps.',
    })
}

/** The name that the program gives itself is wrong here. */
const failAtName = (
  code: 'workflow_name_taken' | 'workflow_name_mismatch',
  { nameAt: { line, column } }: CheckedProgram,
  message: string,
): never => fail(code, { param: 'source', message, details: { line, column } })

async function create({ db, caller, body, world }: HandlerInput<Routes['create']>, program: CheckedProgram) {
  const { name, title, description, inputs, toolPermissionMode } = program.meta
  if ((await lockWorkflow(db, caller.workspaceId, name)) !== null)
    failAtName('workflow_name_taken', program, `This workspace has a workflow ${name}.`)
  const now = world.now()
  const row = {
    id: world.id('flw_'),
    workspaceId: caller.workspaceId,
    name,
    title,
    description,
    inputs,
    toolPermissionMode,
    source: body.source,
    version: 1,
    revision: 1,
    authorAgentRef: caller.kind === 'agent' ? caller.agentRef : null,
    writtenByRef: publicIdOf(caller),
    causedByUuid: await causeOfCaller(db, caller),
    retiredAt: null,
    createdAt: now,
    updatedAt: now,
  }
  await insertWorkflow(db, row)
  return answer(201, await presentWorkflow(db, caller, row))
}

async function update({ db, caller, params, body, world }: HandlerInput<Routes['update']>, program: CheckedProgram) {
  const { meta } = program
  const before = changeable(await lockWorkflow(db, caller.workspaceId, params.name), caller)
  await checkSeesAuthor(db, caller, before)
  if (before.retiredAt !== null) {
    const message = `The workflow ${before.name} was retired on ${toTimestamp(before.retiredAt)}.`
    fail('validation_error', { param: 'name', message })
  }
  if (meta.name !== before.name) {
    const message = `The program names itself ${meta.name}; the name of a workflow stays ${before.name}.`
    failAtName('workflow_name_mismatch', program, message)
  }
  const { title, description, inputs, toolPermissionMode } = meta
  const written = {
    source: body.source,
    writtenByRef: publicIdOf(caller),
    causedByUuid: await causeOfCaller(db, caller),
  }
  const changed = changedRow(before, { title, description, inputs, toolPermissionMode, ...written }, world.now())
  if (changed === before) return presentWorkflow(db, caller, before)
  const after = { ...changed, version: before.version + 1 }
  await replaceWorkflow(db, before, after)
  return presentWorkflow(db, caller, after)
}

const nameCursor = z.tuple([workflowName])

async function list({ db, caller, query }: HandlerInput<Routes['list']>, deps: Dependencies) {
  const { limit } = query
  const after = cursorOf(query, nameCursor)?.[0] ?? ''
  const rows = await listWorkflows(db, { workspaceId: caller.workspaceId, limit, afterName: after })
  const stored = new Set(rows.map(({ name }) => name))
  // A workflow of the workspace has the name for itself.
  const others = (await builtInsIfAny(deps)).filter(({ meta: { name } }) => name > after && !stored.has(name))
  const names = [...stored, ...others.map(({ meta }) => meta.name)].toSorted((a, b) => (a < b ? -1 : 1))
  const shown = names.slice(0, limit + 1)
  const presented = await presentWorkflows(
    db,
    caller,
    rows.filter(({ name }) => shown.includes(name)),
  )
  const activity = await runActivity(
    db,
    caller.workspaceId,
    others.map(({ meta }) => meta.name),
  )
  const byName = new Map([
    ...presented.map((row) => [row.name, row] as const),
    ...others.map((one) => [one.meta.name, presentBuiltIn(one, activity(one.meta.name))] as const),
  ])
  return pageOf({ rows: shown, limit, keyOf: (name) => [name], present: (name) => byName.get(name)! })
}

const runCursor = timeAndId(workflowRunId)

async function runs({ db, caller, query }: HandlerInput<Routes['runs']>) {
  const { limit, status, workflow } = query
  const place = beforeOf(query, runCursor)
  const { workspaceId } = caller
  const visibleTo = workViewerOf(caller)
  const rows = await listWorkflowRuns(db, {
    workspaceId,
    ...withoutUndefined({ status, workflow, visibleTo }),
    ...place,
    limit,
  })
  const shownAtMost = rows.slice(0, limit)
  const callsOf = await countCalls(
    db,
    shownAtMost.map(({ id }) => id),
  )
  const count = fittingRuns(shownAtMost, callsOf)
  const presented = await presentWorkflowRuns(db, caller, rows.slice(0, count))
  const byId = new Map(presented.map((run) => [run.id, run]))
  return pageByTime(rows.slice(0, count + 1), count, ({ id }) => byId.get(id)!)
}

async function cancel({ db, caller, params, world }: HandlerInput<Routes['cancel']>, { leaseMs }: Dependencies) {
  const { id } = await visibleRun(db, caller, params.workflowRunId)
  const run = (await lockWorkflowRun(db, id)) ?? unknownRun()
  if (!mayCancelWorkflowRun(run, caller))
    fail('not_permitted', { message: 'Whoever started the workflow and workspace admins cancel it.' })
  if (run.completedAt !== null)
    fail('invalid_status_transition', { message: `The run has ended: it is ${run.status}.`, allowedValues: [] })
  await finishWorkflowRun(db, run, failureOf('The run was cancelled.'), { world, leaseMs })
  return shown({ db, caller }, (await findWorkflowRunInWorkspace(db, caller.workspaceId, id)) ?? unknownRun())
}

async function shown({ db, caller }: Pick<HandlerInput<Routes['run']>, 'db' | 'caller'>, run: WorkflowRunRow) {
  const [presented] = await presentWorkflowRuns(db, caller, [run])
  return presented!
}
