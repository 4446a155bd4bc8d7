import type { Migration } from './migration.ts'

/** Keeps who assigned a task, whose words it says, and whose words a run follows (docs/trust.md). */
export const whoAsked: Migration = {
  version: 31,
  name: 'who-asked',
  async up(tx) {
    await tx.schema.alterTable('tasks', (t) => {
      t.text('assigned_by_user_id')
      t.text('title_by_user_id')
      t.text('description_by_user_id')
    })
    await tx.schema.alterTable('task_watchers', (t) => {
      t.text('asked_by_user_id')
    })
    for (const table of ['runs', 'wakes'])
      await tx.schema.alterTable(table, (t) => {
        t.text('words_by').notNullable().defaultTo('[]')
      })
    await tx.schema.alterTable('runs', (t) => {
      t.text('instructions_by').notNullable().defaultTo('[]')
    })
    await tx.schema.alterTable('agents', (t) => {
      t.text('agent_md_by_user_id')
    })
    // The last one who changed AGENT.md wrote it; else its first text is that of whoever made the agent.
    const changes = `from agent_history where agent_id = agents.id and changed_keys like '%"agentMd"%'`
    await tx.raw(`update agents set agent_md_by_user_id = case when exists (select 1 ${changes}) then (
      select users.id from users
      where public_id = (select changed_by ${changes} order by created_at desc, id desc limit 1)
    ) else owner_user_id end`)
    // A task that somebody changed since says the words of several people, of whom history has no order by text.
    const creator = `(select id from users where public_id = tasks.created_by_id)`
    const isUntouched = `created_by_type = 'user' and not exists (
      select 1 from task_activity where task_id = tasks.id and kind = 'task.updated' and actor_id <> tasks.created_by_id
    )`
    await tx.raw(
      `update tasks set title_by_user_id = ${creator}, description_by_user_id = ${creator} where ${isUntouched}`,
    )
    // The last one who assigned it counts; a task that was made with its assignee was assigned by whoever made it.
    const assigned = `from task_activity where task_id = tasks.id and kind = 'task.assigned'`
    await tx.raw(`update tasks set assigned_by_user_id = coalesce(
      (select users.id from users where public_id = (select actor_id ${assigned} order by created_at desc, id desc limit 1)),
      case when created_by_type = 'user' and not exists (select 1 ${assigned}) then ${creator} end
    ) where assignee_agent_id is not null`)
    await tx.raw(`update task_watchers set asked_by_user_id = (
      select users.id from task_activity join users on users.public_id = task_activity.actor_id
      where task_activity.task_id = task_watchers.task_id and task_activity.kind = 'watcher.added'
        and task_activity.created_at = task_watchers.created_at limit 1
    ) where added_by = 'manual'`)
    // A default device that a person without the right to make one had made so stays theirs alone.
    await tx.raw(`update workspaces set default_device = null where default_device is not null and not exists (
      select 1 from devices join members on members.user_id = devices.user_id and members.workspace_id = devices.workspace_id
      where devices.public_id = workspaces.default_device and devices.removed_at is null
        and members.workspace_id = workspaces.id and members.role in ('owner', 'admin')
    )`)
  },
}
