import { z } from 'zod'
import type { AnyRoute } from '../../../shared/api/route.ts'
import { grownId, long } from './growth.ts'

// What is asked of a list: each of its filters with each of its words, two of them together, and several by their ids.

export type Ids = Readonly<Record<string, string>>

/** Ids of things about which there is most. */
export const largest: Ids = {
  agentId: grownId('agt_', 1),
  runId: long.run,
  taskId: long.task,
  'tasks.id': long.task,
  'conversations.id': long.conversation,
  automationId: grownId('aut_', 1),
  workflowRunId: grownId('flr_', 1),
  'files.id': long.file,
  'wiki.id': long.page,
}

/** Returns the query strings, the plain list first. `things` are few among the rows that there are. */
export function queriesOf(route: AnyRoute, things: Ids): { plain: string; single: string[]; pairs: string[] } {
  const filters = Object.keys(route.query.shape).filter((key) => !paging.has(key))
  const singles = filters.map((key) =>
    valuesOf(route, key, things).map((value) => `${key}=${encodeURIComponent(value)}`),
  )
  const combined = singles.filter((_, at) => filters[at] !== 'ids').map(([first]) => first!)
  const pairs = combined.flatMap((one, at) => combined.slice(at + 1).map((other) => `${one}&${other}`))
  return { plain: '', single: singles.flat(), pairs }
}

/** Answers of these are pages, of which a second one is read. */
const paging = new Set(['limit', 'after', 'cursor', 'startingAfter', 'endingBefore'])

function valuesOf(route: AnyRoute, key: string, things: Ids): readonly string[] {
  const form = JSON.stringify(z.toJSONSchema(route.query.shape[key], { io: 'input', unrepresentable: 'any' }))
  const words = [...form.matchAll(/"enum":\[([^\]]*)\]/g)].flatMap((match) => JSON.parse(`[${match[1]}]`) as string[])
  if (words.length > 0) return words
  if (form.includes('"boolean"')) return ['true', 'false']
  const values = texts[key]?.(things, route.id)
  if (values === undefined) throw new Error(`test/process/plans/requests.ts has no value for ${key} of ${route.id}`)
  return values
}

const several = (prefix: string) => [Array.from({ length: 20 }, (_, i) => grownId(prefix, i * 7 + 1)).join(',')]
const severalOf: Readonly<Record<string, string[]>> = {
  'agents.list': several('agt_'),
  'runs.list': several('run_'),
  'tasks.list': several('tsk_'),
  'conversations.list': several('cnv_'),
  'files.list': several('file_'),
  'wiki.pages.list': several('wik_'),
}

const longAgo = '2020-01-01T00:00:00Z'
const inFuture = '2099-01-01T00:00:00Z'

/** Values of what is no choice of words, by the key. */
const texts: Readonly<Record<string, (things: Ids, route: string) => readonly string[] | undefined>> = {
  ids: (_, route) => severalOf[route],
  agent: ({ agentId }) => [agentId!, largest['agentId']!],
  agentId: ({ agentId }) => [agentId!, largest['agentId']!],
  askedByAgentId: ({ agentId }) => [agentId!, largest['agentId']!],
  assignee: ({ agentId }) => [agentId!, largest['agentId']!, 'none'],
  lead: ({ agentId }) => [agentId!],
  role: () => ['agent'],
  lines: () => ['10'],
  task: ({ taskId }) => [taskId!, long.task, 'MAI-1'],
  taskId: ({ taskId }) => [taskId!, long.task],
  parentTaskId: ({ taskId }) => [taskId!, 'none'],
  projectId: ({ projectId }) => [projectId!, 'none'],
  runId: ({ runId }) => [runId!],
  sessionId: ({ runId }) => [runId!],
  conversationId: (things) => [things['conversations.id']!, long.conversation],
  participantId: ({ agentId, userId }) => [agentId!, userId!, largest['agentId']!],
  assignedToUserId: ({ userId }) => [userId!],
  approvalId: ({ approvalId }) => [approvalId!],
  workflow: ({ name }) => [name!, 'flow1'],
  entityType: () => ['repo'],
  entityName: () => ['web', 'grown1'],
  entityId: ({ runId }) => [runId!],
  toPageId: (things) => [things['wiki.id']!],
  around: (things) => [things['messages.id']!],
  before: () => [longAgo],
  since: () => [longAgo, inFuture],
  until: () => [longAgo, inFuture],
  timezone: () => ['Europe/Berlin'],
  q: () => ['nothing has this'],
  plugin: () => ['tools'],
  path: () => ['SKILL.md'],
  integration: () => ['deepwiki'],
}
