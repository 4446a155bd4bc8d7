import { toJSONSchema } from 'zod'
import type { AnyRoute } from '../../../shared/api/route.ts'
import type { GoodRequest, Ids } from '../facts/kit/resource-facts.ts'
import { asked, fill } from './every-route.ts'

// How a route is asked about a private file: found out from the route itself, wherever that is possible.

export interface Asked {
  path: string
  body?: unknown
}

/** Keys of queries that page or bound an answer, which is asked for from its beginning; and those that others set along. */
const left = new Set([
  'limit',
  'after',
  'cursor',
  'startingAfter',
  'endingBefore',
  'before',
  'since',
  'until',
  'sort',
  // Goes along with `entityType`.
  'entityId',
  // No thing that a file hangs on has one.
  'role',
  'sessionId',
  // Of skills, which have files of their own.
  'plugin',
  'path',
  // Of the log of a sandbox.
  'lines',
  // Of the days of costs.
  'timezone',
  // A service of the catalog.
  'integration',
])

type Filter = (ids: Ids, path: string) => readonly Readonly<Record<string, string>>[]
const one = (key: string, name: string): Filter => {
  return (ids) => (ids[name] === undefined ? [] : [{ [key]: ids[name] }])
}

/** What a filter is set to, by its key, where its schema does not say it: the things that the file hangs on, and its words. */
const filters: Readonly<Record<string, Filter>> = {
  q: () => ['zorilla', 'numbat', 'okapi'].map((q) => ({ q })),
  ids: (ids, path) => {
    const id = ids[`${path.split('/')[1]}.id`] ?? ids[path === '/agents' ? 'agentId' : 'runId']
    return id === undefined ? [] : [{ ids: id }]
  },
  entityType: (ids, path) =>
    path.startsWith('/files')
      ? [
          ['task', 'tasks.id'],
          ['project', 'projectId'],
          ['run', 'runId'],
          ['conversation', 'conversations.id'],
          ['comment', 'messages.id'],
        ].map(([entityType, name]) => ({ entityType: entityType!, entityId: ids[name!]! }))
      : [{ entityType: 'file' }, { entityType: 'file', entityName: 'zorilla.txt' }],
  entityName: () => [{ entityName: 'zorilla.txt' }],
  agent: one('agent', 'agentId'),
  agentId: one('agentId', 'agentId'),
  assignee: one('assignee', 'agentId'),
  askedByAgentId: one('askedByAgentId', 'agentId'),
  participantId: one('participantId', 'agentId'),
  lead: one('lead', 'agentId'),
  assignedToUserId: one('assignedToUserId', 'userId'),
  task: one('task', 'tasks.id'),
  taskId: one('taskId', 'tasks.id'),
  parentTaskId: one('parentTaskId', 'tasks.id'),
  projectId: one('projectId', 'projectId'),
  runId: one('runId', 'runId'),
  conversationId: one('conversationId', 'conversations.id'),
  approvalId: one('approvalId', 'approvalId'),
  around: one('around', 'messages.id'),
  workflow: one('workflow', 'name'),
}

interface KeySchema {
  type?: string
  enum?: readonly string[]
  items?: KeySchema
  anyOf?: readonly KeySchema[]
}

const keysOf = (route: AnyRoute): [string, KeySchema][] => {
  const { properties = {} } = toJSONSchema(route.query, { io: 'input', unrepresentable: 'any' }) as {
    properties?: Record<string, KeySchema>
  }
  return Object.entries(properties)
}

/** The queries with which a read is asked, one key at a time. Fails for a key that this knows nothing of. */
function queriesOf(route: AnyRoute, path: string, ids: Ids): URLSearchParams[] {
  const made: URLSearchParams[] = []
  for (const [key, schema] of keysOf(route)) {
    if (left.has(key)) continue
    const values = schema.enum ?? schema.items?.enum
    if (key in filters) made.push(...filters[key]!(ids, path).map((each) => new URLSearchParams(each)))
    else if (schema.items?.enum !== undefined)
      made.push(new URLSearchParams(schema.items.enum.map((value): [string, string] => [`${key}[]`, value])))
    else if (values !== undefined) made.push(...values.map((value) => new URLSearchParams({ [key]: value })))
    else if (schema.type === 'boolean') made.push(new URLSearchParams({ [key]: 'true' }))
    else
      throw new Error(
        `${route.id}: say in private-file-plan.ts what the query key ${key} is set to when it is about a file.`,
      )
  }
  return made
}

/** A path filled as far as these ids go, and the ids of a good request or of anything for the rest. */
function pathsOf(route: AnyRoute, views: readonly Ids[], others: Ids): { path: string; ids: Ids }[] {
  const found = new Map<string, Ids>()
  for (const path of [route.path, ...route.aliases])
    for (const view of views) {
      const ids = { ...others, ...view }
      found.set(fill(path, ids), ids)
    }
  return [...found].map(([path, ids]) => ({ path, ids }))
}

/** All that a read is asked: of each thing that the file hangs on, with each filter and expansion. */
export function readsOf(route: AnyRoute, views: readonly Ids[], { things, good }: Known): Asked[] {
  const others = { ...things, ...good.params }
  const plain = asked(fill(route.path, others), good.query)
  const all = new Set([plain])
  for (const { path, ids } of pathsOf(route, views, others)) {
    all.add(asked(path, good.query))
    for (const query of queriesOf(route, path, ids)) all.add(`${path}?${query.toString()}`)
  }
  return [...all].map((path) => ({ path }))
}

export interface Known {
  /** Ids of all kinds. */
  things: Ids
  good: GoodRequest
}

/** Ids of what a write changes: other people's agents, say, are named by the good request alone. */
const writtenTo = /^(files\.|tasks\.|conversations\.|messages\.|taskId|projectId|runId|relationId|itemId|dependencyId)/

/** All that a write is asked of what the file hangs on; nothing when its path names nothing of it. */
export function writesOf(route: AnyRoute, views: readonly Ids[], { things, good }: Known): Asked[] {
  const named = views
    .slice(0, 1)
    .map((view) => Object.fromEntries(Object.entries(view).filter(([name]) => writtenTo.test(name))))
  const others = { ...things, ...good.params }
  const plain = fill(route.path, others)
  return pathsOf(route, named, others)
    .filter(({ path }) => path !== plain)
    .map(({ path }) => ({ path: asked(path, good.query), body: good.body }))
}
