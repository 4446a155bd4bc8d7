import type { AgentRef, WorkspaceUuid } from '../../../../shared/lib/ids.ts'
import { svcSkill } from '../../../../shared/runs/svc-skill.ts'
import { nullableFlag, nullableTime, time } from '../../../db/columns.ts'
import type { Db } from '../../../db/open.ts'
import { command, query } from '../../../db/statement.ts'
import { z } from 'zod'

/** The settings of the skill `svc`, which every workspace has: only what was set otherwise is stored. */
export type BuiltinFacts = z.output<typeof facts>
const facts = z.object({
  /** The time at which the workspace was made. */
  createdAt: time,
  /** null: nobody turned it on or off. */
  enabled: nullableFlag,
  updatedAt: nullableTime,
  /** The agent's own. */
  override: nullableFlag,
})

const found = query(
  `select w.created_at as "createdAt", s.enabled, s.updated_at as "updatedAt", o.enabled as "override"
   from workspaces w
     left join builtin_skill_settings s on s.workspace_id = w.id and s.slug = ? and s.agent_id = ''
     left join builtin_skill_settings o on o.workspace_id = w.id and o.slug = ? and o.agent_id = ?
   where w.id = ? and not exists (
     select 1 from skills k where k.workspace_id = w.id and k.slug = ? and k.plugin_id is null)`,
  facts,
)
const { slug } = svcSkill
/** An id that no agent has. The empty one stands for the workspace. */
const nobody = '-'

/** null: the workspace has a skill of its own with this slug, which it had before svc brought one. */
export async function findBuiltin(
  db: Db,
  { workspaceId, agentRef }: { workspaceId: WorkspaceUuid; agentRef?: AgentRef },
): Promise<BuiltinFacts | null> {
  return found.first(db, [slug, slug, agentRef ?? nobody, workspaceId, slug])
}

const put = command(`insert into builtin_skill_settings (workspace_id, slug, agent_id, enabled, updated_at)
  values (?, ?, ?, ?, ?)
  on conflict (workspace_id, slug, agent_id) do update set enabled = excluded.enabled, updated_at = excluded.updated_at`)

interface Of {
  workspaceId: WorkspaceUuid
  /** Left out: for all agents without a setting of their own. */
  agentRef?: AgentRef
}

export async function putBuiltinSetting(
  db: Db,
  { workspaceId, agentRef, enabled, now }: Of & { enabled: boolean; now: number },
): Promise<void> {
  await put(db, [workspaceId, slug, agentRef ?? '', enabled ? 1 : 0, now])
}

/** Does nothing when there is none. */
export async function removeBuiltinOverride(
  db: Db,
  { workspaceId, agentRef }: { workspaceId: WorkspaceUuid; agentRef: AgentRef },
): Promise<void> {
  await db('builtin_skill_settings').where({ workspace_id: workspaceId, slug, agent_id: agentRef }).delete()
}
