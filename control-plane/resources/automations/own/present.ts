import type { WorkflowRunId } from '../../../../shared/lib/ids.ts'
import type { Automation, AutomationSkip, AutomationTrigger } from '../../../../shared/api/automation-fields.ts'
import { toTimestamp } from '../../../../shared/api/ids.ts'
import type { Db } from '../../../db/open.ts'
import { listRunsByIds } from '../../runs/list-store.ts'
import type { RunRow } from '../../runs/store.ts'
import { listWorkflowRunsByIds } from '../../workflows/run-store.ts'
import { listRunsOfSteps } from '../../workflows/step-store.ts'
import type { FireRow } from '../fire-store.ts'
import type { AutomationRow } from '../store.ts'

/** Automations as clients read them. Their last runs are loaded at once; all must be of one workspace. */
export async function presentAutomations(db: Db, automations: readonly AutomationRow[]): Promise<Automation[]> {
  const ids = automations.flatMap(({ lastRunId }) => lastRunId ?? [])
  const [first] = automations
  const runs = first === undefined ? [] : await listRunsByIds(db, first.workspaceId, [...new Set(ids)])
  const byId = new Map(runs.map((run) => [run.id, run]))
  const flows = await lastWorkflowRuns(db, automations)
  return automations.map((automation) => {
    const { lastRunId, lastWorkflowRunId } = automation
    const run = lastRunId === null ? undefined : byId.get(lastRunId)
    const last = run && { id: run.id, status: run.status, createdAt: run.createdAt, workflowRunId: null }
    return presentAutomation(automation, last ?? flows.get(lastWorkflowRunId ?? '') ?? null)
  })
}

export async function presentOne(db: Db, automation: AutomationRow, webhookUrl?: string): Promise<Automation> {
  const [presented] = await presentAutomations(db, [automation])
  return { ...presented!, ...(webhookUrl === undefined ? {} : { webhookUrl }) }
}

interface LastRun extends Pick<RunRow, 'id' | 'status' | 'createdAt'> {
  workflowRunId: WorkflowRunId | null
}

const statusOfFlow = { running: 'running', stalled: 'running', completed: 'succeeded', failed: 'failed' } as const

/** The last runs of those that start workflows: the run of the last step, with the status of the workflow run. */
async function lastWorkflowRuns(db: Db, automations: readonly AutomationRow[]): Promise<Map<string, LastRun>> {
  const ids = automations.flatMap(({ lastWorkflowRunId }) => lastWorkflowRunId ?? [])
  if (ids.length === 0) return new Map()
  const status = new Map((await listWorkflowRunsByIds(db, ids)).map((flow) => [flow.id, statusOfFlow[flow.status]]))
  const steps = await listRunsOfSteps(db, ids)
  const last = new Map<string, LastRun>()
  // Oldest first, so that the last one stays.
  for (const { id, createdAt, workflowRunId } of steps)
    if (workflowRunId !== null)
      last.set(workflowRunId, { id, createdAt, workflowRunId, status: status.get(workflowRunId) ?? 'failed' })
  return last
}

function presentAutomation(automation: AutomationRow, lastRun: LastRun | null): Automation {
  return {
    object: 'automation',
    id: automation.id,
    workspaceId: automation.workspaceId,
    projectId: automation.projectId,
    name: automation.name,
    description: automation.description,
    status: automation.status,
    trigger: triggerOf(automation),
    prompt: automation.prompt,
    workflow: automation.workflow,
    agentId: automation.agentRef,
    modelId: automation.modelId,
    environment: automation.environment,
    concurrencyPolicy: automation.concurrencyPolicy,
    createdBy: { type: automation.createdByType, id: automation.createdByRef },
    lastRun: lastRun && {
      id: lastRun.id,
      status: lastRun.status,
      startedAt: toTimestamp(automation.lastFiredAt ?? lastRun.createdAt),
      workflowRunId: lastRun.workflowRunId,
    },
    nextRunAt: automation.status === 'active' ? toTimestamp(automation.nextFireAt) : null,
    archivedAt: toTimestamp(automation.archivedAt),
    createdAt: toTimestamp(automation.createdAt),
    updatedAt: toTimestamp(automation.updatedAt),
  }
}

function triggerOf({ triggerType: type, ...row }: AutomationRow): AutomationTrigger {
  if (type === 'webhook') return { type }
  if (type === 'schedule') return { type, cron: row.cron ?? '', timezone: row.timezone ?? 'UTC' }
  return { type, event: row.event ?? 'pull_request.merged', repo: row.repo ?? '' }
}

export function presentSkip(skip: FireRow): AutomationSkip {
  return {
    object: 'automation_skip',
    id: skip.id,
    automationId: skip.automationId,
    // Every skip has a reason.
    reason: skip.reason ?? 'not_admitted',
    message: skip.message,
    createdAt: toTimestamp(skip.createdAt),
  }
}
