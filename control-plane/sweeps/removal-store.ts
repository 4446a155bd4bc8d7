import { blobId } from '../db/id-columns.ts'
import type { WorkspaceUuid } from '../../shared/lib/ids.ts'
import { z } from 'zod'
import { text } from '../db/columns.ts'
import { releaseBlobs } from '../blobs/store.ts'
import { deleteSome, lockRows } from '../db/dialect.ts'
import type { Db, Tx } from '../db/open.ts'
import { hasWithdrawals, queueWithdrawals } from '../resources/connections/withdrawal-store.ts'
import { removeEmptyCompany } from '../resources/workspaces/company-store.ts'
import { claimRemoved } from '../resources/workspaces/store.ts'
import type { World } from '../../shared/lib/world.ts'

// Rows that go, a bounded number at a time. No foreign key cascades, so what refers to a row goes before it.

interface Dependent {
  table: string
  /** Names the row of the group's table. */
  column: string
  /** Names a blob that nobody needs any more once the row is gone. */
  blob?: string
}

/** A table whose rows belong to a workspace, and the tables whose rows belong to those. */
interface Group {
  table: string
  /** The column by which dependents name a row; left out: the table has none. */
  key?: string
  /** The column of a table without dependents that names a blob which nobody needs any more once the row is gone. */
  blob?: string
  dependents?: readonly Dependent[]
}

const of = (column: string, ...tables: readonly string[]): Dependent[] => tables.map((table) => ({ table, column }))

/**
 * Groups in the order in which their rows go: rows that act by themselves go first, and rows that refer to others go before those. A test
 * fails until each table of a new migration is here or among those that stay.
 */
const groups: readonly Group[] = [
  { table: 'automations', key: 'id', dependents: of('automation_id', 'automation_fires') },
  { table: 'webhook_events' },
  { table: 'webhook_deliveries' },
  { table: 'webhooks' },
  { table: 'mails' },
  { table: 'mail_settings' },
  { table: 'wakes' },
  { table: 'workflow_runs', key: 'id', dependents: of('workflow_run_id', 'workflow_calls') },
  { table: 'workflow_programs' },
  { table: 'workflows' },
  { table: 'search_pages', key: 'id', dependents: of('rowid', 'search_index') },
  { table: 'search_chunks' },
  { table: 'search_vectors' },
  {
    table: 'files',
    key: 'id',
    dependents: [...of('file_id', 'file_relations'), { table: 'file_revisions', column: 'file_id', blob: 'blob_id' }],
  },
  {
    table: 'wiki_pages',
    key: 'id',
    dependents: [
      ...of('page_id', 'wiki_sources', 'wiki_links', 'wiki_revisions'),
      ...of('from_page_id', 'wiki_relations'),
      ...of('to_page_id', 'wiki_relations'),
    ],
  },
  { table: 'learnings', key: 'id', dependents: of('learning_id', 'learning_entities') },
  { table: 'skills', key: 'id', dependents: of('skill_id', 'skill_overrides') },
  ...['builtin_skill_settings', 'skill_shares', 'mcp_servers', 'plugins'].map((table) => ({ table })),
  { table: 'skill_bundles', blob: 'blob_id' },
  {
    table: 'conversations',
    key: 'id',
    dependents: of('conversation_id', 'message_edits', 'messages', 'conversation_reads', 'conversation_participants'),
  },
  { table: 'approvals' },
  { table: 'questions' },
  { table: 'platform_changes' },
  {
    table: 'tasks',
    key: 'id',
    dependents: [
      ...of('task_id', 'task_checklist_items', 'task_dependencies', 'task_watchers', 'task_activity', 'task_reads'),
      ...of('depends_on_task_id', 'task_dependencies'),
    ],
  },
  {
    table: 'runs',
    key: 'id',
    dependents: of('run_id', 'run_frames', 'run_evidence', 'run_change_sets', 'run_details', 'run_network'),
  },
  { table: 'removed_run_logs', key: 'run_id', dependents: of('run_id', 'run_frames', 'run_evidence') },
  { table: 'removed_runs' },
  { table: 'run_cancellations' },
  { table: 'unassignments' },
  { table: 'connections', key: 'id', dependents: of('connection_id', 'connection_sign_ins') },
  { table: 'secrets', key: 'id', dependents: of('secret_id', 'secret_grants') },
  { table: 'projects', key: 'id', dependents: of('project_id', 'project_grants') },
  { table: 'agents', key: 'id', dependents: of('agent_id', 'wake_keys', 'agent_history', 'agent_revisions') },
  ...[
    'sandboxes',
    'repos',
    'repo_bindings',
    'quota_windows',
    'quota_uses',
    'provider_circuits',
    'folders',
    'devices',
    'login_tokens',
  ].map((table) => ({ table })),
  ...['device_grants', 'sign_in_links', 'members'].map((table) => ({ table })),
  // The clients go last: the providers of connections that were here are asked by these.
  { table: 'connection_clients' },
]

/** The tables that a removed workspace leaves empty. */
export const ownedTables: readonly string[] = [
  ...new Set(groups.flatMap(({ table, dependents = [] }) => [...dependents.map((each) => each.table), table])),
  'workspaces',
]

/** A transaction begins no further statement after so long, or so many rows. A SQLite database does nothing else meanwhile. */
const mostMs = 20
const mostRows = 2_000
/**
 * The rows that a batch removes in any case: where each statement takes long, batches of a few rows would never come to an end of them
 * all.
 */
const leastRows = 64
/** A statement begins with few rows, since some are large, and takes more for as long as it is quick. */
const fewest = 4
const most = 256
const quickMs = 8

type Clock = Pick<World, 'now' | 'monotonic'>

/** The room of one batch. */
class Budget {
  readonly world: Clock
  private readonly until: number
  rows = fewest
  private left = mostRows

  constructor(world: Clock) {
    this.world = world
    this.until = world.monotonic() + mostMs
  }

  get isSpent(): boolean {
    return this.left <= mostRows - leastRows && (this.left <= 0 || this.world.monotonic() >= this.until)
  }

  /** Does one statement, which returns the number of rows that it removed. */
  async spend(statement: () => Promise<number>): Promise<number> {
    const began = this.world.monotonic()
    const removed = await statement()
    this.left -= removed
    const isQuick = this.world.monotonic() - began < quickMs
    this.rows = isQuick ? Math.min(most, this.rows * 2) : Math.max(fewest, Math.floor(this.rows / 2))
    return removed
  }
}

type BatchEnd = 'more' | 'done' | 'taken'

/**
 * Removes some of the rows of a removed workspace, last itself, and its company when it was the last one there. `taken`:
 * somebody else is at it, or providers are still asked by the clients that are left.
 */
export async function removeSomeOfWorkspace(tx: Tx, id: WorkspaceUuid, world: Clock): Promise<BatchEnd> {
  const companyId = await claimRemoved(tx, id)
  if (companyId === null) return 'taken'
  await queueWithdrawals(tx, { workspaceId: id }, world.now())
  const budget = new Budget(world)
  while (!budget.isSpent) {
    const group = await firstFilled(tx, id)
    if (group?.table === 'connection_clients' && (await hasWithdrawals(tx, id))) return 'taken'
    if (group === null) {
      await tx('workspaces').where({ id }).delete()
      await removeEmptyCompany(tx, companyId)
      return 'done'
    }
    // Looking for the next group costs more than most batches do.
    while (!budget.isSpent && (await removeSomeOf(tx, id, { group, budget })));
  }
  return 'more'
}

/** Returns false when the workspace has no row of the group any more. */
async function removeSomeOf(
  tx: Tx,
  workspaceId: string,
  { group, budget }: { group: Group; budget: Budget },
): Promise<boolean> {
  const { table, key, blob } = group
  const rows = tx(table).where({ workspace_id: workspaceId })
  if (blob !== undefined)
    return (
      (await budget.spend(() =>
        deleteWithBlobs(tx, table, { rows, blob, limit: budget.rows, at: budget.world.now() }),
      )) > 0
    )
  if (key === undefined) return (await budget.spend(() => deleteSome(tx, table, { rows, limit: budget.rows }))) > 0
  const keys: unknown[] = await rows.limit(budget.rows).pluck(key)
  return keys.length > 0 && (await removeSomeOfGroup(tx, { group, keys, budget }))
}

const conversations = groups.find(({ table }) => table === 'conversations')!

/** Removes some of the rows of a removed conversation, last itself. */
export async function removeSomeOfConversation(tx: Tx, id: string, world: Clock): Promise<BatchEnd> {
  const row: unknown = await lockRows(tx('conversations').where({ id }).whereNotNull('removed_at'), true).first('id')
  if (row === undefined) return 'taken'
  const isGone = await removeSomeOfGroup(tx, { group: conversations, keys: [id], budget: new Budget(world) })
  return isGone ? 'done' : 'more'
}

/** Removes what depends on these rows and, when nothing does any more, the rows themselves: true then. */
async function removeSomeOfGroup(
  tx: Tx,
  { group, keys, budget }: { group: Group; keys: readonly unknown[]; budget: Budget },
): Promise<boolean> {
  for (const { table, column, blob } of group.dependents ?? []) {
    for (;;) {
      if (budget.isSpent) return false
      const limit = budget.rows
      const rows = tx(table).whereIn(column, keys as string[])
      const some = () =>
        blob === undefined
          ? deleteSome(tx, table, { rows, limit })
          : deleteWithBlobs(tx, table, { rows, blob, limit, at: budget.world.now() })
      if ((await budget.spend(some)) < limit) break
    }
  }
  await budget.spend(() =>
    tx(group.table)
      .whereIn(group.key!, keys as string[])
      .delete(),
  )
  return true
}

type Rows = ReturnType<Db>

const released = z.object({ id: text, blob: blobId.nullable() })

/** Deletes rows, and releases the blobs that they name, whose bytes are then removed by the sweep of blobs. */
async function deleteWithBlobs(
  tx: Tx,
  table: string,
  { rows, blob, limit, at }: { rows: Rows; blob: string; limit: number; at: number },
): Promise<number> {
  const found = (await rows.limit(limit).select({ id: 'id', blob })) as unknown[]
  const some = found.map((row) => released.parse(row))
  await releaseBlobs(
    tx,
    some.flatMap(({ blob: id }) => (id === null ? [] : [id])),
    at,
  )
  const ids = some.map(({ id }) => id)
  await tx(table).whereIn('id', ids).delete()
  return ids.length
}

/** The first group of which the workspace still has rows. */
async function firstFilled(tx: Tx, workspaceId: string): Promise<Group | null> {
  const cases = groups.map(({ table }, at) => `when exists (select 1 from ${table} where workspace_id = ?) then ${at}`)
  const found: unknown = await tx
    .select(
      tx.raw(
        `case ${cases.join(' ')} else -1 end as place`,
        groups.map(() => workspaceId),
      ),
    )
    .first()
  return groups[Number((found as { place: unknown }).place)] ?? null
}

/** Lists what is removed and has rows left, longest removed first. */
export async function listRemoved(db: Db, table: 'workspaces' | 'conversations', limit: number): Promise<string[]> {
  return db(table).whereNotNull('removed_at').orderBy(['removed_at', 'id']).limit(limit).pluck('id')
}
