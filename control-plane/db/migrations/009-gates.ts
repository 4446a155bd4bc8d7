import type { Knex } from 'knex'
import type { Migration } from './migration.ts'

/** Keeps what stops a run to ask a person (approvals, questions), and the secrets that people give to agents. */
export const gates: Migration = {
  version: 9,
  name: 'gates',
  async up(tx) {
    await createApprovals(tx)
    await createQuestions(tx)
    await createSecrets(tx)
    await tx.schema.alterTable('platform_changes', (t) => {
      t.text('result')
    })
    await adoptPlatformChanges(tx)
  },
}

async function createApprovals(tx: Knex.Transaction): Promise<void> {
  await tx.schema.createTable('approvals', (t) => {
    t.text('id').primary()
    t.text('workspace_id').notNullable().references('workspaces.id')
    t.text('trigger').notNullable()
    t.text('status').notNullable()
    // The agent that asks; null: the platform.
    t.text('agent_id')
    t.text('run_id').index()
    t.text('task_id').index()
    t.text('conversation_id')
    t.text('session_id')
    t.text('prompt').notNullable()
    t.text('gated_thing').notNullable()
    // Two approvals of a workspace never share it.
    t.text('raise_key')
    t.text('assigned_type')
    t.text('assigned_id')
    // The one who gave it to that person, and the reason.
    t.text('assigned_by')
    t.text('assign_reason')
    t.text('outcome')
    t.text('reason')
    t.text('applied_scope')
    t.text('resolved_type')
    t.text('resolved_id')
    t.bigint('resolved_at')
    t.integer('version').notNullable().defaultTo(1)
    t.bigint('created_at').notNullable()
    t.bigint('updated_at').notNullable()
    t.unique(['workspace_id', 'raise_key'])
    t.index(['workspace_id', 'created_at', 'id'])
    t.index(['status', 'trigger', 'created_at'])
  })
}

async function createQuestions(tx: Knex.Transaction): Promise<void> {
  await tx.schema.createTable('questions', (t) => {
    t.text('id').primary()
    t.text('workspace_id').notNullable().references('workspaces.id')
    t.text('agent_id').notNullable()
    t.text('run_id').notNullable().index()
    t.text('task_id').index()
    t.text('conversation_id')
    t.text('session_id').notNullable()
    t.text('status').notNullable()
    t.text('prompt').notNullable()
    t.text('answer_mode').notNullable()
    t.text('options')
    t.text('secret_request')
    t.text('answer')
    t.text('answered_by')
    t.bigint('answered_at')
    // The message on a task or in a conversation that shows it; a reply to it answers.
    t.text('message_id').index()
    t.integer('version').notNullable().defaultTo(1)
    t.bigint('created_at').notNullable()
    t.bigint('updated_at').notNullable()
    t.index(['workspace_id', 'created_at', 'id'])
  })
}

async function createSecrets(tx: Knex.Transaction): Promise<void> {
  await tx.schema.createTable('secrets', (t) => {
    t.text('id').primary()
    t.text('workspace_id').notNullable().references('workspaces.id')
    t.text('name').notNullable()
    t.text('provider')
    t.text('env_var_name').notNullable()
    // Nonce, ciphertext and tag.
    t.binary('sealed').notNullable()
    // `usr_` id of the person who gave the value.
    t.text('created_by').notNullable()
    t.text('last_revealed_by')
    t.bigint('last_revealed_at')
    t.bigint('created_at').notNullable()
    t.unique(['workspace_id', 'name'])
    t.index(['workspace_id', 'created_at', 'id'])
  })
  await tx.schema.createTable('secret_grants', (t) => {
    t.text('secret_id').notNullable().references('secrets.id')
    t.text('agent_id').notNullable().references('agents.id').index()
    t.text('workspace_id').notNullable()
    t.text('granted_by').notNullable()
    t.bigint('created_at').notNullable()
    t.primary(['secret_id', 'agent_id'])
  })
}

/** Writes that waited for approval before there were approvals get theirs; nobody is assigned, so any person may resolve. */
async function adoptPlatformChanges(tx: Knex.Transaction): Promise<void> {
  const waiting = (await tx('platform_changes').where({ status: 'pending' })) as Record<string, string | number>[]
  for (const change of waiting) {
    await tx('approvals').insert({
      id: change['id'],
      workspace_id: change['workspace_id'],
      trigger: 'platform_change',
      status: 'open',
      agent_id: change['agent_id'],
      run_id: change['run_id'],
      prompt: `An agent asks for ${change['route_id']}.`,
      gated_thing: JSON.stringify({
        kind: 'platform_change',
        name: change['route_id'],
        inputDigest: null,
        safeSummary: String(change['route_id']),
        scope: 'once',
      }),
      created_at: change['created_at'],
      updated_at: change['created_at'],
    })
  }
}
