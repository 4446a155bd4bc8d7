import type { WorkspaceUuid } from '../../shared/lib/ids.ts'
import type { NewApproval } from '../../control-plane/resources/approvals/store.ts'
import type { NewQuestion } from '../../control-plane/resources/questions/store.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { at } from './seed.ts'

// Approvals and questions that are open, not stored yet.

export const digest = 'a'.repeat(64)
const id = <Prefix extends string>(prefix: Prefix) => realWorld.id(prefix)

export const approvalRow = (workspaceId: WorkspaceUuid, changes: Partial<NewApproval> = {}): NewApproval => ({
  id: id('apr_'),
  workspaceId,
  trigger: 'tool_permission',
  agentRef: null,
  runId: null,
  taskId: null,
  conversationId: null,
  sessionId: null,
  prompt: 'Allow Bash: make?',
  gatedThing: {
    kind: 'tool_call',
    name: 'Bash',
    inputDigest: digest,
    safeSummary: 'make',
    scope: 'once',
    toolArgs: { command: 'make' },
  },
  raiseKey: null,
  assignedType: null,
  assignedRef: null,
  createdAt: at,
  ...changes,
})

export const questionRow = (workspaceId: WorkspaceUuid, changes: Partial<NewQuestion> = {}): NewQuestion => ({
  id: id('qst_'),
  workspaceId,
  agentRef: id('agt_'),
  runId: id('run_'),
  taskId: null,
  conversationId: null,
  sessionId: 's',
  prompt: 'Which?',
  workflowRunId: null,
  workflowCall: null,
  waitUntil: null,
  answerMode: 'free_text',
  options: null,
  secretRequest: null,
  createdAt: at,
  ...changes,
})
