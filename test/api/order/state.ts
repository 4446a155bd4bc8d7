import type { Knex } from 'knex'
import type { Scene } from './scene.ts'

/**
 * Reads a workspace's rows and the answers in a form that is the same wherever the same happened: times are only
 * there or not, ids are known by name or by the order in which they are first seen, rows stand in the order of their text.
 */
export interface Outcome {
  answers: string[]
  rows: string[]
}

/** Tables, and of which rows of another one theirs are. What tells of happenings, and keys of requests, is left out. */
const ofWorkspace = [
  'agents',
  'projects',
  'tasks',
  'runs',
  'wakes',
  'automations',
  'automation_fires',
  'conversations',
  'approvals',
  'questions',
  'platform_changes',
  'members',
  'secret_grants',
  'workspaces',
]
const ofParent: readonly [table: string, column: string, parent: string][] = [
  ['agent_revisions', 'agent_id', 'agents'],
  ['agent_history', 'agent_id', 'agents'],
  ['run_details', 'run_id', 'runs'],
  ['project_grants', 'project_id', 'projects'],
  ['task_dependencies', 'task_id', 'tasks'],
  ['task_watchers', 'task_id', 'tasks'],
  ['task_activity', 'task_id', 'tasks'],
  ['conversation_participants', 'conversation_id', 'conversations'],
  ['messages', 'conversation_id', 'conversations'],
]

/** Chosen by chance, or by the order of all workspaces. */
const left = new Set(['seq', 'token_hash', 'requestId', 'webhookUrl', 'email'])

export async function readOutcome(root: Knex, scene: Scene, answers: readonly unknown[]): Promise<Outcome> {
  const { workspaceId } = scene.owner
  const rows: string[] = []
  const rowsOf = (table: string) => {
    const all = root(table).where(table === 'workspaces' ? 'id' : 'workspace_id', workspaceId)
    // No reader finds a deleted one any more; its rows go in the background, sooner or later.
    return table === 'conversations' ? all.whereNull('removed_at') : all
  }
  for (const table of ofWorkspace) for (const row of await rowsOf(table)) rows.push(`${table} ${plain(row)}`)
  for (const [table, column, parent] of ofParent)
    for (const row of await root(table).whereIn(column, rowsOf(parent).select('id')))
      rows.push(`${table} ${plain(row)}`)
  const name = namer(scene.names)
  const told = answers.map((answer) => name(plain(answer)))
  const masked = rows.map((row) => [row.replaceAll(anyId, (id) => scene.names.get(id) ?? '?'), row] as const)
  const sorted = masked.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => name(row))
  return { answers: told, rows: sorted.toSorted() }
}

const anyId = /\b[a-z]{2,4}_[A-Za-z0-9]{16,22}\b|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g
const anyDigest = /\b[0-9a-f]{64}\b/g
const anySlug = /\border[- ][0-9a-f]{32}\b/gi
const anyTime = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g

function namer(names: Map<string, string>): (text: string) => string {
  const seen = new Map(names)
  return (text) =>
    text
      .replaceAll(anyTime, 'some time')
      .replaceAll(anyDigest, 'digest')
      .replaceAll(anySlug, 'slug')
      .replaceAll(anyId, (id) => {
        const known = seen.get(id)
        if (known !== undefined) return known
        const fresh = `${id.includes('_') ? id.split('_')[0] : 'uuid'} ${seen.size - names.size + 1}`
        seen.set(id, fresh)
        return fresh
      })
}

function plain(value: unknown): string {
  return JSON.stringify(value, (key, inner: unknown) => {
    if (left.has(key)) return undefined
    if (typeof inner === 'number' && /(?:_at|_month|Ms)$/.test(key)) return 'some time'
    return inner
  })
}
