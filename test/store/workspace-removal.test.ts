import { expect, test } from 'vitest'
import type { Db } from '../../control-plane/db/open.ts'
import { insertFileRelation } from '../../control-plane/resources/files/own/relation-store.ts'
import { replaceEntities } from '../../control-plane/resources/learnings/store.ts'
import { insertLoginToken } from '../../control-plane/resources/members/store.ts'
import { insertGrant, insertProject } from '../../control-plane/resources/projects/store.ts'
import { readForSearch } from '../../control-plane/search/searchable.ts'
import { indexSubject } from '../../control-plane/search/store.ts'
import { wordIndexTables } from '../../control-plane/db/word-index.ts'
import { insertProgram } from '../../control-plane/resources/workflows/run-store.ts'
import { replaceLinks } from '../../control-plane/resources/wiki/own/link-store.ts'
import { insertSource } from '../../control-plane/resources/wiki/own/source-store.ts'
import { insertRelation } from '../../control-plane/resources/wiki/own/relation-store.ts'
import { insertWorkflow } from '../../control-plane/resources/workflows/store.ts'
import { listRemoved, ownedTables, removeSomeOfWorkspace } from '../../control-plane/sweeps/removal-store.ts'
import { inTransaction } from '../../control-plane/db/transaction.ts'
import { findSlugOwner } from '../../control-plane/resources/workspaces/slug-store.ts'
import { findWorkspace, markRemoved } from '../../control-plane/resources/workspaces/store.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { onBoth, openSqlite } from '../kit/database.ts'
import { seedFile } from './file-rows.ts'
import { linkRow, seedPage } from './wiki-rows.ts'
import { seedLearning } from './learning-rows.ts'
import { addNetwork } from '../../control-plane/resources/sandboxes/network-store.ts'
import { insertSandbox } from '../../control-plane/resources/sandboxes/store.ts'
import { insertMcpServer } from '../../control-plane/resources/mcp-servers/store.ts'
import { putBuiltinSetting } from '../../control-plane/resources/skills/own/builtin-store.ts'
import { putOverride } from '../../control-plane/resources/skills/override-store.ts'
import { listDueWithdrawals, removeWithdrawal } from '../../control-plane/resources/connections/withdrawal-store.ts'
import { seedConnection, seedConnectionClient, seedSignIn } from './connection-rows.ts'
import { mcpServerRow } from './mcp-server-rows.ts'
import { seedPlugin } from './plugin-rows.ts'
import { recordEvent } from '../../control-plane/resources/webhooks/event-store.ts'
import { mailRow, seedMailSettings } from './mail-rows.ts'
import { insertMail } from '../../control-plane/resources/mail/store.ts'
import { seedDelivery, seedWebhook } from './webhook-rows.ts'
import { sandboxRow } from './sandbox-rows.ts'
import { seedShare, seedSkill } from './skill-rows.ts'
import { seedCall, seedFlow, workflowRow } from './workflow-rows.ts'
import { at, projectRow, seedAgent, seedDevice, seedPerson, seedRun, seedWorkspace } from './seed.ts'

/** Tables whose rows belong to no workspace, or stay when one is removed. */
const keptTables = [
  'blobs',
  'code_guesses',
  'companies',
  'connection_withdrawals',
  'dashboard_sessions',
  'device_replies',
  'github_deliveries',
  'idempotency',
  'oidc_attempts',
  'oidc_identities',
  'outbox',
  'sandbox_engines',
  'schema_migrations',
  'server_keys',
  'users',
  'warm_sandboxes',
  'workspace_slugs',
]

test('each table is either emptied with its workspace or known to stay', async () => {
  const database = openSqlite()
  const tables: { name: string }[] = await database
    .root('sqlite_master')
    .where({ type: 'table' })
    .whereNot('name', 'like', 'sqlite_%')
    .whereNotIn('name', [...wordIndexTables])
    .orderBy('name')
    .select('name')
  const known = [...ownedTables, ...keptTables].toSorted()
  expect(tables.map(({ name }) => name)).toEqual(known)
  await database.close()
})

onBoth('a removed workspace leaves nothing behind but its slugs, and another one keeps all', async ({ root }) => {
  const kept = await furnished(root)
  const before = await countsOf(root)
  const removed = await furnished(root)
  expect(Object.values(await countsOf(root)).every((count) => count >= 2)).toBe(true)
  await markRemoved(root, (await findWorkspace(root, removed.workspaceId))!, at)
  expect(await listRemoved(root, 'workspaces', 10)).toEqual([removed.workspaceId])
  // A machine so slow that the time of a batch is over before its first statement.
  let now = 0
  const slow = { ...realWorld, monotonic: () => (now += 1_000) }
  const removeAll = async () => {
    for (let end = 'more'; end === 'more';)
      end = await inTransaction(root, (tx) => removeSomeOfWorkspace(tx, removed.workspaceId, slow))
  }
  await removeAll()
  // Its clients of OAuth are there until providers have been told of its tokens.
  expect(await countsOf(root)).toEqual({ ...before, connection_clients: 2, workspaces: 2 })
  for (const { id } of await listDueWithdrawals(root, { now: Number.MAX_SAFE_INTEGER, limit: 9 }))
    await removeWithdrawal(root, id)
  await removeAll()
  expect(await countsOf(root)).toEqual(before)
  expect(await findWorkspace(root, removed.workspaceId)).toBeNull()
  expect(await findSlugOwner(root, removed.slug)).toBe(removed.workspaceId)
  expect((await findWorkspace(root, kept.workspaceId))?.slug).toBe(kept.slug)
})

async function countsOf(db: Db): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const table of ownedTables) {
    const counted: unknown = await db(table).count({ n: '*' }).first()
    counts[table] = Number((counted as { n: unknown }).n)
  }
  return counts
}

/** A workspace with a row in every table that belongs to it. */
async function furnished(db: Db) {
  const slug = `w-${realWorld.uuid()}`
  const workspaceId = await seedWorkspace(db, slug)
  const userId = await seedPerson(db, workspaceId)
  const agent = await seedAgent(db, workspaceId)
  const { id: runId } = await seedRun(db, agent)
  const device = await seedDevice(db, { workspaceId, personUuid: userId })
  await insertLoginToken(db, {
    id: realWorld.uuid(),
    personUuid: userId,
    workspaceId,
    tokenHash: realWorld.uuid(),
    name: 'x',
    at,
  })
  const project = projectRow(workspaceId)
  const projectId = project.id
  await insertProject(db, project)
  await insertGrant(db, { projectId, agentRef: agent.id, createdAt: at })
  await insertWorkflow(db, workflowRow(workspaceId))
  await insertProgram(db, { workspaceId, digest: 'd', source: 'x' })
  await seedCall(db, (await seedFlow(db, workspaceId)).id, 0)
  const file = await seedFile(db, workspaceId)
  const relation = { id: realWorld.uuid(), fileId: file.id, entityType: 'run', entityId: runId, role: 'spec' } as const
  await insertFileRelation(db, { ...relation, createdAt: at })
  const searched = { workspaceId, subject: realWorld.id('wik_'), title: 'Page' }
  await indexSubject(db, searched, readForSearch({ kind: 'markdown', body: 'Some text.' }))
  const page = await seedPage(db, workspaceId)
  await insertSource(db, { pageId: page.id, workspaceId, root: 'docs', path: 'a.md', sha256: 'x' })
  await replaceLinks(db, page.id, [linkRow(page, 0)])
  const other = await seedPage(db, workspaceId)
  await insertRelation(db, { fromPageId: page.id, toPageId: other.id, createdAt: at })
  const learning = await seedLearning(db, workspaceId)
  await replaceEntities(db, learning, [{ type: 'repo', name: 'web' }])
  const skill = await seedSkill(db, workspaceId)
  await putOverride(db, { skillId: skill.id, agentRef: agent.id, enabled: true })
  await putBuiltinSetting(db, { workspaceId, agentRef: agent.id, enabled: false, now: at })
  await seedShare(db, skill)
  const plugin = await seedPlugin(db, workspaceId)
  await seedSignIn(db, await seedConnection(db, workspaceId))
  await insertMcpServer(db, mcpServerRow(workspaceId, { pluginId: plugin.id }))
  await seedConnectionClient(db, workspaceId)
  await seedDelivery(db, await seedWebhook(db, workspaceId))
  await insertMail(db, mailRow(await seedMailSettings(db, workspaceId)))
  await recordEvent(db, { type: 'run.failed', workspaceId, subjectId: runId, world: realWorld })
  await insertSandbox(db, sandboxRow(workspaceId))
  const asked = { host: 'a.example', decision: 'allowed', requests: 1, bytesSent: 1, bytesReceived: 1 } as const
  await inTransaction(db, (tx) => addNetwork(tx, runId, [{ ...asked, firstAt: at, lastAt: at }]))
  const id = realWorld.uuid()
  const body = Buffer.from('x')
  const rows: Record<string, Record<string, unknown>> = {
    run_frames: { run_id: runId, fence: 1, first_seq: 1, last_seq: 1, sha256: 'x', body, received_at: at },
    run_evidence: { id, run_id: runId, fence: 1, device: 'd', reason: 'r', body, received_at: at },
    removed_run_logs: { run_id: runId, workspace_id: workspaceId, created_at: at },
    removed_runs: { id, workspace_id: workspaceId, agent_id: agent.id, created_at: at, removed_at: at },
    run_change_sets: { run_id: runId, fence: 1, result: '{}', received_at: at },
    wake_keys: { agent_id: agent.id, wake_key: 'k', answer: '{}', expires_at: at },
    agent_history: { id, agent_id: agent.id, kind: 'config', changed_keys: '[]', description: '', created_at: at },
    agent_revisions: {
      id,
      agent_id: agent.id,
      before_config: '{}',
      after_config: '{}',
      changed_keys: '[]',
      source: 'patch',
      created_at: at,
    },
    automations: {
      id,
      workspace_id: workspaceId,
      name: 'a',
      status: 'active',
      trigger_type: 'webhook',
      prompt: 'p',
      agent_id: agent.id,
      concurrency_policy: 'allow_concurrent',
      created_by_type: 'system',
      created_at: at,
      updated_at: at,
    },
    search_vectors: { workspace_id: workspaceId, digest: 'd', model: 'm', vector: body, code: body },
    automation_fires: { id, automation_id: id, workspace_id: workspaceId, kind: 'skipped', created_at: at },
    repo_bindings: { workspace_id: workspaceId, repository: 'acme/web', created_at: at },
    provider_circuits: {
      workspace_id: workspaceId,
      device: 'dvc_1',
      provider: 'claude',
      times: 1,
      opened_at: at,
      open_until: at,
    },
    quota_uses: { workspace_id: workspaceId, account: 'claude/dvc_1', used: '[]', told_at: at, true_until: at },
    quota_windows: { workspace_id: workspaceId, account: 'claude/dvc_1', resets_at: at },
    wakes: {
      id,
      workspace_id: workspaceId,
      agent_id: agent.id,
      trigger_source: 'mention',
      prompt: 'p',
      allow_calls: '[]',
      state: 'waiting',
      created_at: at,
    },
    conversations: {
      id,
      workspace_id: workspaceId,
      kind: 'channel',
      created_by_type: 'system',
      created_at: at,
      updated_at: at,
    },
    conversation_participants: { conversation_id: id, type: 'user', subject_id: 'usr_1', created_at: at },
    conversation_reads: { conversation_id: id, user_id: 'usr_1', read_seq: 0, read_at: at },
    messages: {
      id,
      conversation_id: id,
      seq: 1,
      author_type: 'system',
      body: 'x',
      source: 'in_app',
      mentions: '[]',
      attachment_ids: '[]',
      created_at: at,
      updated_at: at,
    },
    message_edits: { message_id: id, conversation_id: id, edit: 1, body: 'x', replaced_at: at },
    tasks: {
      id,
      workspace_id: workspaceId,
      key: 'ABC-1',
      title: 't',
      title_words: 't',
      status: 'open',
      priority: 'normal',
      created_by_type: 'system',
      created_at: at,
      updated_at: at,
    },
    task_checklist_items: { id, task_id: id, text: 'x', done: 0, position: 0, created_at: at, updated_at: at },
    task_dependencies: { task_id: id, depends_on_task_id: id, type: 'related', created_at: at },
    task_watchers: { task_id: id, subject_type: 'user', subject_id: 'usr_1', added_by: 'auto', created_at: at },
    task_activity: { id, task_id: id, source: 'activity', kind: 'k', actor_type: 'system', data: '{}', created_at: at },
    task_reads: { task_id: id, reader_type: 'user', reader_id: 'usr_1', last_read_at: at },
    repos: {
      id,
      workspace_id: workspaceId,
      name: 'a/b',
      git_remote: 'h/a/b',
      provider: 'other',
      host: 'h',
      created_at: at,
    },
    approvals: {
      id,
      workspace_id: workspaceId,
      trigger: 'tool_permission',
      status: 'open',
      prompt: 'p',
      gated_thing: '{}',
      created_at: at,
      updated_at: at,
    },
    questions: {
      id,
      workspace_id: workspaceId,
      agent_id: agent.id,
      run_id: runId,
      session_id: 's',
      status: 'open',
      prompt: 'p',
      answer_mode: 'free_text',
      created_at: at,
      updated_at: at,
    },
    secrets: {
      id,
      workspace_id: workspaceId,
      name: 'S',
      env_var_name: 'S',
      sealed: body,
      created_by: 'u',
      created_at: at,
    },
    secret_grants: { secret_id: id, agent_id: agent.id, workspace_id: workspaceId, granted_by: 'u', created_at: at },
    unassignments: { agent_id: agent.id, workspace_id: workspaceId, created_at: at },
    run_cancellations: {
      id,
      workspace_id: workspaceId,
      subject: 'workspace',
      subject_id: workspaceId,
      extent: 'waiting',
      exit_reason: 'company_paused',
      seen_at: -1,
      seen_id: '',
      created_at: at,
    },
    platform_changes: {
      id,
      workspace_id: workspaceId,
      agent_id: agent.id,
      run_id: runId,
      route_id: 'r',
      params: '{}',
      body: '{}',
      status: 'pending',
      created_at: at,
    },
    device_grants: {
      id,
      device_code_hash: id,
      user_code_hash: id,
      client_name: 'x',
      address: 'x',
      status: 'approved',
      user_id: userId,
      workspace_id: workspaceId,
      interval_ms: 1,
      created_at: at,
      expires_at: at,
    },
    sign_in_links: {
      id,
      token_hash: id,
      user_id: userId,
      workspace_id: workspaceId,
      created_at: at,
      expires_at: at,
    },
    folders: {
      short_id: id,
      workspace_id: workspaceId,
      device: device.publicId,
      display_name: 'f',
      root_path: '/',
      binding_state: 'active',
      created_by: userId,
      created_at: at,
    },
  }
  for (const [table, row] of Object.entries(rows)) await db(table).insert(row)
  return { workspaceId, slug }
}
