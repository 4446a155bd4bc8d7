import { z } from 'zod'
import { idIn } from '../lib/id-schema.ts'
import type * as ids from '../lib/ids.ts'
import { refersTo, type ReferenceKind } from './references.ts'

const prefixed = <Kind extends string = string>(prefix: string, example: string, kind?: ReferenceKind) => {
  const form = `an id such as ${example}`
  const schema = z
    .string()
    .regex(new RegExp(`^${prefix}_[0-9A-Za-z]{16}$`), `must be ${form}`)
    .meta({ example })
  return idIn<Kind>(kind === undefined ? schema : refersTo(schema, kind, form))
}

export const agentId = prefixed<ids.AgentRef>('agt', 'agt_8fK2mQ0xPzL4tR7v', 'agent')
export const runId = prefixed<ids.RunId>('run', 'run_3nB7cW1yHsD5jK9q', 'run')
export const approvalId = prefixed<ids.ApprovalId>('apr', 'apr_6tG4kV2zMxF8pL0w', 'approval')
export const questionId = prefixed<ids.QuestionId>('qst', 'qst_1rT5nY9bJcQ3dH7s', 'question')
export const automationId = prefixed<ids.AutomationId>('aut', 'aut_2xC6vB9nMq4WsE8r', 'automation')
export const workflowId = prefixed<ids.WorkflowId>('flw', 'flw_4hT8wQ1zNb6Kc3Xv')
export const workflowRunId = prefixed<ids.WorkflowRunId>('flr', 'flr_9mZ2pL5yRd7Vf0Jg', 'workflow run')
export const secretId = prefixed<ids.SecretId>('sec', 'sec_7kP2nV5xQbD8rM1c', 'secret')
export const mcpServerId = prefixed('mcp', 'mcp_5nQ8vT2kXwB6mZ9r')
export const taskId = prefixed<ids.TaskId>('tsk', 'tsk_9wE3mU7xKfA1gN5z', 'task')
export const conversationId = prefixed<ids.ConversationId>('cnv', 'cnv_4yI8oP2cLhS6jB0d', 'conversation')
export const messageId = prefixed<ids.MessageId>('msg', 'msg_2kX5vB8nQwE1rT4y')
export const fileId = prefixed<ids.FileId>('file', 'file_6kR2wB9xTnV4pL7c', 'file')
export const fileRevisionId = prefixed('frev', 'frev_3pW7yD1kZsG5mQ9h')
export const wikiPageId = prefixed<ids.WikiPageId>('wik', 'wik_5gT9rK2nVxB8mQ4d')
export const wikiRevisionId = prefixed('wrev', 'wrev_8cN3jH6wLzR1pX7s')
export const learningId = prefixed('lrn', 'lrn_7vT2mX9qLbR4kD1s', 'learning')
export const connectionId = prefixed<ids.ConnectionId>('conn', 'conn_4hJ8kL2mQ6xT9vB3')
export const webhookId = prefixed<ids.WebhookId>('whk', 'whk_6vN2xQ9kTmB4wZ8r', 'webhook')
export const webhookDeliveryId = prefixed<ids.WebhookDeliveryId>('whd', 'whd_3kR8nV2mQx7T1wZ9')
export const userPublicId = prefixed<ids.PersonRef>('usr', 'usr_7aZ1qX5vNmG9kT3r')
export const workspacePublicId = prefixed<ids.WorkspaceRef>('ws', 'ws_2sD6fH0lWeR4tY8u')
export const sandboxId = prefixed<ids.SandboxId>('sbx', 'sbx_4kR8nV2mQx7T1wZ9')
export const devicePublicId = prefixed<ids.DeviceRef>('dvc', 'dvc_5dF9gJ3kZxC7vB1n', 'device')
export const folderShortId = prefixed<ids.FolderRef>('fs', 'fs_0mN4bV8cQwE2rT6y')

export const loginTokenId = prefixed('tok', 'tok_2bX7mR4kJ9sQ1wZe')
/** A fire or a skip of an automation; only cursors name it. */
export const firedId = prefixed('fir', 'fir_8bW3nZ6cKpV5yD2j')

const aUuid = 'a UUID such as 5b0c7d0e-6a7e-4b52-9a8e-2f9d1c3e4a6b'

/** A UUID is lower-cased, like the stored ids. */
export const uuid = z
  .string()
  .toLowerCase()
  .regex(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/, `must be ${aUuid}`)
  .meta({ format: 'uuid', example: '5b0c7d0e-6a7e-4b52-9a8e-2f9d1c3e4a6b' })

export const agentUuid = idIn<ids.AgentUuid>(uuid)
export const deviceUuid = idIn<ids.DeviceUuid>(refersTo(uuid.meta({}), 'device', aUuid))
export const personUuid = idIn<ids.PersonUuid>(uuid)
export const projectUuid = idIn<ids.ProjectUuid>(refersTo(uuid.meta({}), 'project', aUuid))
export const repoUuid = idIn<ids.RepoUuid>(uuid)
export const workspaceUuid = idIn<ids.WorkspaceUuid>(uuid)

/** `agt_` id, @handle, name, UUID or `me`: never malformed, only unknown. */
export const agentRef = refersTo(
  z.string().min(1).max(200).describe('An agent: `agt_` id, @handle, name, UUID, or `me` for the calling agent.'),
  'agent',
  'an `agt_` id, a @handle, a name, a UUID, or `me` for the calling agent',
)

const runForms = 'an id such as run_3nB7cW1yHsD5jK9q, or `current` within a run'

/** `run_` id, or `current` within a run. */
export const runRef = idIn<ids.RunId | 'current'>(
  refersTo(
    z
      .string()
      .regex(/^(run_[0-9A-Za-z]{16}|current)$/, `must be ${runForms}`)
      .meta({ description: 'A run: `run_` id, or `current` within a run.', example: 'run_3nB7cW1yHsD5jK9q' }),
    'run',
    runForms,
  ),
)

export const taskRef = refersTo(
  z.string().min(1).max(100).describe('A task: `tsk_` id, task key, or `current` within a run.'),
  'task',
  'a `tsk_` id, a key such as WEB-12, or `current` within a run',
)

/** A time in a reply. */
export const timestamp = z.string().meta({ format: 'date-time', example: '2026-03-01T09:30:00.000Z' })

/** A time from a caller: ISO 8601 with a date, and a zone when it has a time of day. */
export const timestampInput = z
  .string()
  .max(40)
  .regex(
    /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2}))?$/,
    'must be a date or a time with its zone, such as 2026-03-01 or 2026-03-01T09:30:00Z',
  )
  .refine((text) => !Number.isNaN(Date.parse(text)), 'not a time')
  .meta({ example: '2026-03-01T09:30:00Z' })

export function toTimestamp(ms: number): string
export function toTimestamp(ms: number | null): string | null
export function toTimestamp(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}
