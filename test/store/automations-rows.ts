import type { AgentRef, WorkspaceUuid } from '../../shared/lib/ids.ts'
import type { AutomationRow } from '../../control-plane/resources/automations/store.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { at } from './seed.ts'

/** An active webhook automation of the agent, not stored yet. */
export function automationRow(
  agent: { id: AgentRef; workspaceId: WorkspaceUuid },
  changes: Partial<AutomationRow> = {},
): AutomationRow {
  return {
    id: realWorld.id('aut_'),
    workspaceId: agent.workspaceId,
    projectId: null,
    name: 'Automation',
    description: null,
    status: 'active',
    triggerType: 'webhook',
    cron: null,
    timezone: null,
    event: null,
    repo: null,
    tokenHash: null,
    prompt: 'Do it.',
    workflow: null,
    agentRef: agent.id,
    modelId: null,
    environment: null,
    concurrencyPolicy: 'allow_concurrent',
    createdByType: 'system',
    createdByRef: null,
    causedByUuid: null,
    lastRunId: null,
    lastWorkflowRunId: null,
    lastFiredAt: null,
    nextFireAt: null,
    callsSince: null,
    calls: 0,
    archivedAt: null,
    version: 1,
    createdAt: at,
    updatedAt: at,
    ...changes,
  }
}
