import { columnsOf, byDatabase, future, grown, long, uuid, type Growth, type Owners } from './growth.ts'

/** Agents and their runs, tasks, automations and workflows, and what the server keeps of requests. */
export function growthsOfWork(owners: Owners): Record<string, Growth> {
  const { counts } = owners
  const { like, workspace_id, created_at, times, one, agent_id, task_id, run_id } = columnsOf(owners)
  return {
    agents: {
      count: counts.agents,
      like: `${like} and visibility = 'company' and deleted_at is null`,
      set: { id: grown('agt_', 'n.i'), uuid: uuid('n.i'), handle: `'grown' || n.i`, ...times },
    },
    agent_history: { count: 4_000, set: { id: uuid('n.i'), agent_id, created_at } },
    agent_revisions: { count: 4_000, set: { id: uuid('n.i'), agent_id, created_at } },
    projects: {
      count: counts.projects,
      like: `${like} and deleted_at is null`,
      set: { id: uuid('n.i'), prefix: `'G' || n.i`, name: `'Grown ' || n.i`, ...times },
    },
    tasks: {
      count: counts.tasks,
      like,
      set: {
        id: grown('tsk_', 'n.i'),
        workspace_id,
        key: `'G-' || n.i`,
        title: `'Grown ' || n.i`,
        title_words: `'grown ' || n.i`,
        status: `case when n.i = 1 then 'open' else 'done' end`,
        project_id: `case when n.i % 2 = 0 then ${uuid(`n.i % ${counts.projects} + 1`)} end`,
        parent_task_id: 'null',
        assignee_agent_id: agent_id,
        priority: `'normal'`,
        archived_at: 'null',
        completed_at: created_at,
        wake_at: 'null',
        branch_name: 'null',
        ...times,
      },
    },
    task_activity: { count: 8_000, set: { seq: byDatabase, id: grown('act_', 'n.i'), task_id, created_at } },
    task_dependencies: {
      count: 10_000,
      set: {
        task_id: one('tsk_', counts.tasks),
        depends_on_task_id: grown('tsk_', `(n.i + n.i / ${counts.tasks} + 1) % ${counts.tasks} + 1`),
        created_at,
      },
    },
    task_watchers: { count: 6_000, set: { task_id: grown('tsk_', 'n.i'), created_at } },
    task_reads: { count: 4_000, set: { task_id: grown('tsk_', 'n.i') } },
    task_checklist_items: { count: 4_000, set: { id: grown('chk_', 'n.i'), task_id: grown('tsk_', 'n.i'), ...times } },
    runs: {
      count: counts.runs,
      like,
      set: {
        id: run_id,
        workspace_id,
        agent_id,
        status: `'succeeded'`,
        trigger_source: `'manual'`,
        task_id,
        task_key: `'G-' || n.i`,
        conversation_id: `case when n.i % 5 = 0 then '${long.conversation}' end`,
        session_id: `'session' || n.i`,
        exit_reason: `'completed'`,
        lease_state: `'none'`,
        offer_expires_at: 'null',
        workflow_run_id: 'null',
        parent_run_id: 'null',
        compacts: 'null',
        created_at,
        ended_at: created_at,
      },
    },
    run_details: { count: counts.runs, set: { run_id } },
    run_frames: {
      count: 4_000,
      set: {
        run_id: `case when n.i % 4 = 0 then '${long.run}' else ${run_id} end`,
        first_seq: 't.last_seq + n.i',
        last_seq: 't.last_seq + n.i',
      },
    },
    run_change_sets: { count: 4_000, like: null, set: { run_id, fence: '1', result: `'{}'`, received_at: '1' } },
    wakes: {
      count: 4_000,
      set: {
        seq: byDatabase,
        id: grown('wak_', 'n.i'),
        workspace_id,
        agent_id,
        state: `'done'`,
        wake_key: 'null',
        created_at,
      },
    },
    automations: {
      count: counts.automations,
      like,
      set: { id: grown('aut_', 'n.i'), token_hash: 'null', next_fire_at: 'null', ...times },
    },
    automation_fires: {
      count: 6_000,
      set: {
        id: grown('fir_', 'n.i'),
        workspace_id,
        automation_id: one('aut_', counts.automations),
        kind: `case when n.i % 3 = 1 then 'skipped' else 'triggered' end`,
        run_id: `case when n.i % 3 = 1 then null else ${run_id} end`,
        workflow_run_id: 'null',
        occasion: `'at ' || n.i`,
        created_at,
      },
    },
    github_deliveries: {
      count: 4_000,
      like: null,
      set: { id: uuid('n.i'), happening: `'{}'`, state: `'done'`, due_at: 'n.i', created_at: `${future} + n.i` },
    },
    workflow_runs: {
      count: counts.workflowRuns,
      like,
      set: {
        id: grown('flr_', 'n.i'),
        workspace_id,
        workflow: `case when n.i % 4 = 0 then t.workflow else 'flow' || (n.i % 20) end`,
        status: `'completed'`,
        task_id,
        completed_at: created_at,
        created_at,
        changed_at: created_at,
      },
    },
    workflow_calls: {
      count: 4_000,
      set: {
        workflow_run_id: one('flr_', counts.workflowRuns),
        seq: 't.seq + n.i',
        agent_id,
        ended_at: 't.dispatched_at + n.i',
        advanced_at: 't.dispatched_at + n.i',
      },
    },
    wake_keys: {
      count: 4_000,
      like: null,
      set: { agent_id, wake_key: `'key' || n.i`, answer: `'{}'`, expires_at: `${future} + n.i` },
    },
    idempotency: { count: 4_000, set: { scope_hash: `'scope' || n.i`, created_at, expires_at: 't.expires_at + n.i' } },
    outbox: { count: 4_000, set: { seq: byDatabase, created_at } },
  }
}
