import { columnsOf, grown, long, uuid, type Growth, type Owners } from './growth.ts'

/** What people and agents say, ask and know: conversations, approvals, files, the wiki. */
export function growthsOfKnowledge(owners: Owners): Record<string, Growth> {
  const { counts } = owners
  const { like, workspace_id, created_at, times, one, often, agent_id, run_id, file_id, page_id, ofRun } =
    columnsOf(owners)
  return {
    conversations: {
      count: counts.conversations,
      like: `${like} and kind = 'channel' and task_id is null`,
      set: { id: grown('cnv_', 'n.i'), workspace_id, last_activity_at: created_at, ...times },
    },
    messages: {
      count: counts.messages,
      set: {
        id: grown('msg_', 'n.i'),
        conversation_id: often(long.conversation, 'cnv_', counts.conversations),
        seq: 't.seq + n.i',
        reply_of_run: 'null',
        send_key: 'null',
        ...times,
      },
    },
    message_edits: {
      count: 4_000,
      set: {
        message_id: grown('msg_', 'n.i'),
        conversation_id: often(long.conversation, 'cnv_', counts.conversations),
      },
    },
    conversation_participants: {
      count: 2 * counts.conversations,
      set: {
        conversation_id: one('cnv_', counts.conversations),
        type: `'agent'`,
        subject_id: grown('agt_', `(n.i + n.i / ${counts.conversations}) % 600 + 1`),
      },
    },
    conversation_reads: {
      count: 2 * counts.conversations,
      set: { conversation_id: one('cnv_', counts.conversations), user_id: grown('usr_', 'n.i') },
    },
    approvals: {
      count: 5_000,
      like: `${like} and "trigger" = 'tool_permission'`,
      set: {
        id: grown('apr_', 'n.i'),
        ...ofRun,
        status: `'resolved'`,
        raise_key: 'null',
        assigned_id: grown('usr_', 'n.i % 20 + 1'),
        ...times,
      },
    },
    platform_changes: {
      count: 4_000,
      like: null,
      set: {
        id: grown('apr_', 'n.i'),
        workspace_id,
        agent_id,
        run_id,
        route_id: `'agents.create'`,
        params: `'{}'`,
        body: `'{}'`,
        status: `'applied'`,
        told_run_id: run_id,
        created_at: '1 + n.i',
      },
    },
    questions: {
      count: 5_000,
      like,
      set: {
        id: grown('qst_', 'n.i'),
        ...ofRun,
        status: `'resolved'`,
        session_id: `'session' || n.i`,
        message_id: 'null',
        workflow_run_id: 'null',
        wait_until: 'null',
        ...times,
      },
    },
    blobs: {
      count: counts.files,
      like: 'owned_at is not null',
      set: { id: grown('blb_', 'n.i'), workspace_id, released_at: 'null', created_at },
    },
    files: {
      count: counts.files,
      like: `${like} and deleted_at is null`,
      set: { id: grown('file_', 'n.i'), workspace_id, name: `'grown' || n.i`, blob_id: grown('blb_', 'n.i'), ...times },
    },
    file_revisions: {
      count: counts.files,
      set: { id: grown('frev_', 'n.i'), file_id, number: 't.number + n.i', created_at },
    },
    file_relations: { count: counts.files, set: { id: uuid('n.i'), file_id, entity_id: run_id, created_at } },
    wiki_pages: {
      count: counts.pages,
      like: `${like} and archived_at is null`,
      set: { id: grown('wik_', 'n.i'), workspace_id, slug: `'grown' || n.i`, title: `'Grown ' || n.i`, ...times },
    },
    wiki_revisions: {
      count: counts.pages,
      set: { id: grown('wrev_', 'n.i'), page_id, number: 't.number + n.i', created_at },
    },
    wiki_links: {
      count: counts.pages,
      set: {
        page_id: grown('wik_', 'n.i'),
        workspace_id,
        target_page_id: one('wik_', 400),
        target_slug: `'grown' || n.i`,
      },
    },
    wiki_relations: {
      count: counts.pages,
      set: { from_page_id: grown('wik_', 'n.i'), to_page_id: one('wik_', 400), created_at },
    },
    wiki_sources: { count: counts.pages, set: { page_id: grown('wik_', 'n.i'), workspace_id, path: `'grown' || n.i` } },
    search_chunks: {
      count: counts.pages,
      set: { id: '1000000 + n.i', workspace_id, subject: grown('wik_', 'n.i'), digest: `'digest' || n.i` },
    },
    learnings: {
      count: counts.learnings,
      like,
      set: { id: grown('lrn_', 'n.i'), ...ofRun, status: `'accepted'`, approval_id: grown('apr_', 'n.i'), ...times },
    },
    learning_entities: {
      count: 2 * counts.learnings,
      set: { learning_id: one('lrn_', counts.learnings), workspace_id, ord: 'n.i', name: `'grown' || (n.i % 600)` },
    },
  }
}
