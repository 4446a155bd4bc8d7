import type { AgentRef, WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import { skillSourceTypes } from '../../../shared/api/skill-fields.ts'
import { unavailableReasons } from '../../../shared/runs/skills.ts'
import { int, json, nullableText, text } from '../../db/columns.ts'
import { personUuid, pluginId } from '../../db/id-columns.ts'
import type { Db } from '../../db/open.ts'
import { command, query } from '../../db/statement.ts'
import { frontMatter } from './bundle-store.ts'

/** The skills that runs of an agent get, as `isEffective` has it. */
export type EffectiveSkill = z.output<typeof effective>
const effective = z.object({
  slug: text,
  name: text,
  description: nullableText,
  sourceType: z.enum(skillSourceTypes),
  pluginId: pluginId.nullable(),
  fileCount: int,
  totalBytes: int,
  unavailableReason: z.enum(unavailableReasons).nullable(),
  writtenByUuid: personUuid.nullable(),
  describedByUuid: personUuid.nullable(),
  bundleHash: text,
  frontMatter: json(frontMatter),
})

const columns = `s.slug, s.name, s.description, s.source_type as "sourceType", s.plugin_id as "pluginId",
  s.file_count as "fileCount", s.total_bytes as "totalBytes", s.unavailable_reason as "unavailableReason",
  s.written_by_user_id as "writtenByUuid", s.described_by_user_id as "describedByUuid",
  b.bundle_hash as "bundleHash", b.front_matter as "frontMatter"`
const ofPlugin = `(s.plugin_id is null or exists (select 1 from plugins p where p.id = s.plugin_id and p.enabled = 1))`

// Skills that the agent has by an override of its own come first, then those of the workspace, the oldest first.
const ofAgent = query(
  `select * from (
     select ${columns} from skill_overrides o
       join skills s on s.id = o.skill_id join skill_bundles b on b.id = s.bundle_id
     where o.agent_id = ? and o.enabled = 1 and s.workspace_id = ? and ${ofPlugin}
     order by s.created_at, s.id limit ?) as own
   union all
   select * from (
     select ${columns} from skills s join skill_bundles b on b.id = s.bundle_id
     where s.workspace_id = ? and s.enabled_by_default = 1 and ${ofPlugin}
       and not exists (select 1 from skill_overrides o where o.agent_id = ? and o.skill_id = s.id)
     order by s.created_at, s.id limit ?) as usual`,
  effective,
)

/** Lists them, those that the agent has by an override of its own first. */
export async function listEffectiveSkills(
  db: Db,
  { workspaceId, agentRef, limit }: { workspaceId: WorkspaceUuid; agentRef: AgentRef; limit: number },
): Promise<EffectiveSkill[]> {
  const found = await ofAgent.list(db, [agentRef, workspaceId, limit, workspaceId, agentRef, limit])
  return found.slice(0, limit)
}

const setReason = command(
  `update skills set unavailable_reason = ?
   where workspace_id = ? and coalesce(unavailable_reason, '') <> ? and bundle_id in [
     select id from skill_bundles where workspace_id = ? and bundle_hash = ?]`,
)

/** Sets why the skills with these files cannot be had; null: a run has them. Whoever changes a skill meanwhile is not held up by it. */
export async function setUnavailable(
  db: Db,
  { workspaceId, bundleHash, reason }: { workspaceId: WorkspaceUuid; bundleHash: string; reason: string | null },
): Promise<void> {
  await setReason(db, [reason, workspaceId, reason ?? '', workspaceId, bundleHash])
}
