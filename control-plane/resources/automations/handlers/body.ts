import type { AgentRef, PersonUuid } from '../../../../shared/lib/ids.ts'
import type { AutomationTrigger } from '../../../../shared/api/automation-fields.ts'
import type { automationRoutes, TriggerBody } from '../../../../shared/api/automations.ts'
import { fail } from '../../../../shared/api/errors.ts'
import type { BodyOf } from '../../../../shared/api/route.ts'
import { base62, type World } from '../../../../shared/lib/world.ts'
import { publicIdOf, type Caller } from '../../../http/callers.ts'
import { hashToken } from '../../../http/token-hash.ts'
import { defaultPolicy, readTrigger } from '../own/rules.ts'
import { nextInstant } from '../schedule.ts'
import type { AutomationRow } from '../store.ts'
import { withoutUndefined } from '../../../../shared/lib/without-undefined.ts'

// Makes new and changed rows from the caller's input.

/** A row, with the secret of its webhook if it was just made. */
export interface Written {
  row: AutomationRow
  token: string | null
}

/** The columns of a trigger. The secret of a webhook is shown once; only its hash is stored. */
function triggerColumns(trigger: AutomationTrigger, world: World) {
  const none = { cron: null, timezone: null, event: null, repo: null, tokenHash: null, nextFireAt: null }
  const columns = { ...none, triggerType: trigger.type }
  if (trigger.type === 'github') return { ...columns, event: trigger.event, repo: trigger.repo }
  if (trigger.type === 'webhook') return columns
  const { cron, timezone } = trigger
  return { ...columns, cron, timezone, nextFireAt: nextInstant(trigger, world.now()) }
}

export function newHookToken(world: World): { token: string; tokenHash: string } {
  const token = base62(world.bytes(64), 43)
  return { token, tokenHash: hashToken(token) }
}

/** Fails with `validation_error` and, without a connection to GitHub, `github_not_installed`. */
function checkedTrigger(body: TriggerBody, world: World, isGithubInstalled: boolean): AutomationTrigger {
  const read = readTrigger(body, world.now())
  if ('flaw' in read) return fail('validation_error', { param: read.flaw.path, details: { fields: [read.flaw] } })
  if (read.trigger.type === 'github' && !isGithubInstalled)
    fail('github_not_installed', {
      param: 'trigger',
      message:
        'This server has no connection to GitHub for this repository. Its operator makes one, and binds the repository to the workspace with `svc-server repo bind`.',
    })
  return read.trigger
}

interface Circumstances {
  caller: Caller
  world: World
  /** `agt_` id. */
  agentRef: AgentRef
  isGithubInstalled: boolean
  /** UUID of the person who is responsible for this change; null: unknown. */
  causedByUuid: PersonUuid | null
}

export function newAutomation(body: BodyOf<typeof automationRoutes.create>, around: Circumstances): Written {
  const { caller, world, agentRef } = around
  const trigger = checkedTrigger(body.trigger, world, around.isGithubInstalled)
  checkWorkflow(body.workflow ?? null, trigger.type)
  const secret = trigger.type === 'webhook' ? newHookToken(world) : null
  const now = world.now()
  const row: AutomationRow = {
    ...triggerColumns(trigger, world),
    id: world.id('aut_'),
    workspaceId: caller.workspaceId,
    projectId: null,
    name: body.name,
    description: body.description ?? null,
    status: 'active',
    tokenHash: secret?.tokenHash ?? null,
    prompt: body.prompt,
    workflow: body.workflow ?? null,
    agentRef,
    modelId: body.modelId ?? null,
    environment: body.environment ?? null,
    concurrencyPolicy: body.concurrencyPolicy ?? defaultPolicy(trigger.type),
    createdByType: caller.kind === 'person' ? 'user' : 'agent',
    createdByRef: publicIdOf(caller),
    causedByUuid: around.causedByUuid,
    lastRunId: null,
    lastWorkflowRunId: null,
    lastFiredAt: null,
    callsSince: null,
    calls: 0,
    archivedAt: null,
    version: 1,
    createdAt: now,
    updatedAt: now,
  }
  return { row, token: secret?.token ?? null }
}

/** Whoever changes one of these is responsible for what the automation starts from then on. */
const whatItStarts = ['trigger', 'prompt', 'agentId', 'modelId', 'environment', 'workflow'] as const

/** Absent keys stay; a sent trigger replaces the old one entirely. */
export function changedAutomation(
  before: AutomationRow,
  body: BodyOf<typeof automationRoutes.update>,
  around: Circumstances,
): Written {
  const { world } = around
  const { trigger: sent, status, agentId: _, ...plain } = body
  const row: AutomationRow = {
    ...before,
    ...withoutUndefined(plain),
    agentRef: around.agentRef,
    updatedAt: world.now(),
  }
  if (whatItStarts.some((key) => body[key] !== undefined)) row.causedByUuid = around.causedByUuid
  let token: string | null = null
  if (sent !== undefined) {
    const trigger = checkedTrigger(sent, world, around.isGithubInstalled)
    const isSwitch = trigger.type === 'webhook' && before.triggerType !== 'webhook'
    const secret = isSwitch ? newHookToken(world) : null
    const kept = trigger.type === 'webhook' ? before.tokenHash : null
    Object.assign(row, triggerColumns(trigger, world), { tokenHash: secret?.tokenHash ?? kept })
    token = secret?.token ?? null
  }
  checkWorkflow(row.workflow, row.triggerType)
  return { row: status === undefined ? row : automationWithStatus(row, status, world), token }
}

export function automationWithStatus(row: AutomationRow, status: AutomationRow['status'], world: World): AutomationRow {
  if (status === row.status) return row
  const now = world.now()
  return { ...row, status, archivedAt: status === 'archived' ? now : null, updatedAt: now }
}

function checkWorkflow(workflow: string | null, type: AutomationRow['triggerType']): void {
  if (workflow !== null && type !== 'github') fail('workflow_needs_github_trigger', { param: 'workflow' })
}
