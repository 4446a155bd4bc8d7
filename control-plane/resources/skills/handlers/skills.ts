import { fail } from '../../../../shared/api/errors.ts'
import { beforeOf, pageByTime, timeAndId } from '../../../../shared/api/paging.ts'
import { skillId, skillLimits } from '../../../../shared/api/skill-fields.ts'
import { skillRoutes } from '../../../../shared/api/skills.ts'
import { withoutUndefined } from '../../../../shared/lib/without-undefined.ts'
import { changedRow } from '../../../db/changed-row.ts'
import type { Db } from '../../../db/open.ts'
import { implement, prepared, type HandlerInput, type ImplementedRoute } from '../../../http/implement.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { raisePlatformChange } from '../../platform-changes/steps/raise.ts'
import { causeOfCaller } from '../../runs/cause.ts'
import { isBuiltin, readBuiltinFile } from '../own/builtin.ts'
import { putBuiltinSetting } from '../own/builtin-store.ts'
import { findBundle, retireBundle } from '../bundle-store.ts'
import { agentOfSkills, lookUpSkill } from '../own/lookup.ts'
import { removeOverridesOfSkill } from '../override-store.ts'
import { findPluginByReference } from '../plugin-store.ts'
import { shownText } from '../bundle.ts'
import { kindOf } from '../own/present.ts'
import { hasFixedWords, isOfPlugin } from '../rules.ts'
import { forgetSkillOfShares } from '../own/share-store.ts'
import { clearOverride, listAllSkills, setOverride } from '../steps/own/builtin.ts'
import { orStorageFailed, readBundleFile, type NewBundle } from '../steps/bundle.ts'
import { pluginOf, shownOverrides, shownSkill, shownSummaries } from '../steps/own/present.ts'
import { removeSkill, replaceSkill, type SkillFilter, type SkillRow } from '../store.ts'
import { createSkill, prepareCreate, prepareReplace, replaceBundle, replacement, type Replacement } from './bundles.ts'

type Dependencies = Pick<ResourceDependencies, 'blobs' | 'costly'>
type Routes = typeof skillRoutes

export function skillHandlers(deps: Dependencies): ImplementedRoute[] {
  const { blobs } = deps
  return implement(skillRoutes, {
    list,

    create: prepared<Routes['create'], NewBundle>({
      before: (input) => prepareCreate(input, deps),
      handle: createSkill,
      giveUp: ({ blobId }) => blobs.giveUp(blobId),
    }),

    async get({ db, caller, params }) {
      return shownSkill(db, await lookUpSkill(db, caller, params.skillId))
    },

    update,
    delete: remove,

    replaceBundle: prepared<Routes['replaceBundle'], Replacement>({
      before: (input) => prepareReplace(input, deps),
      handle: replaceBundle,
      giveUp: async (made) => void ('blobId' in made && (await blobs.giveUp(made.blobId))),
      staged: replacement,
    }),

    content: (input) => content(input, deps),

    async overrides({ db, caller, params, query }) {
      const { id: agentRef } = await agentOfSkills(db, caller, params.agentId)
      const { limit } = query
      const { workspaceId } = caller
      const rows = await listAllSkills(db, { workspaceId, ...beforeOf(query, listCursor), limit })
      const shown = await shownOverrides(db, agentRef, rows)
      const bySkill = new Map(shown.map((one) => [one.skillId, one]))
      return pageByTime(rows, limit, ({ id }) => bySkill.get(id)!)
    },

    async setOverride({ db, caller, params, body: { enabled }, world }) {
      const { skill, agentRef } = await ownOverride({ db, caller, params })
      const plugin = await pluginOf(db, skill)
      if (enabled && plugin !== null && !plugin.enabled) fail('skill_plugin_disabled', { param: 'enabled' })
      await setOverride(db, { skill, agentRef, enabled, now: world.now() })
      return (await shownOverrides(db, agentRef, [skill]))[0]!
    },

    async clearOverride({ db, caller, params }) {
      await clearOverride(db, await ownOverride({ db, caller, params }))
    },
  })
}

const listCursor = timeAndId(skillId)

async function list({ db, caller: { workspaceId }, query }: HandlerInput<Routes['list']>) {
  const { limit, sort, sourceType, plugin, enabledByDefault, q } = query
  const found = plugin === undefined ? undefined : await findPluginByReference(db, workspaceId, plugin)
  const { before } = beforeOf(query, listCursor)
  const place = sort === '-installedAt' ? { before } : { after: before ?? { createdAt: -1, id: '' } }
  const filter = {
    ...(sourceType === 'repo' ? { isFromRepo: true } : { sourceType }),
    pluginId: found?.id,
    enabledByDefault,
    q,
    ...place,
  }
  const rows: SkillRow[] =
    found === null
      ? []
      : await listAllSkills(db, { workspaceId, limit, ...(withoutUndefined(filter) as Partial<SkillFilter>) })
  const shown = new Map((await shownSummaries(db, rows)).map((one) => [one.id, one]))
  return pageByTime(rows, limit, ({ id }) => shown.get(id)!)
}

async function update(input: HandlerInput<Routes['update']>) {
  const { db, caller, params, body, world } = input
  const before = await lookUpSkill(db, caller, params.skillId)
  const { name, description, enabledByDefault } = body
  if (hasFixedWords(before) && (name !== undefined || description !== undefined)) fail('skill_replace_forbidden')
  const plugin = await pluginOf(db, before)
  if (enabledByDefault === true && plugin !== null && !plugin.enabled)
    fail('skill_plugin_disabled', { param: 'enabledByDefault' })
  if (caller.kind === 'agent')
    return raisePlatformChange(input, { caller, routeId: skillRoutes.update.id, params: { skillId: before.id } })
  if (isBuiltin(before)) return turn(input, before)
  const told = changedRow(before, withoutUndefined({ name, description }), world.now())
  // Agents read the name and the description of a skill.
  const written = told === before ? before : { ...told, describedByUuid: await causeOfCaller(db, caller) }
  const after = changedRow(written, withoutUndefined({ enabledByDefault }), world.now())
  await replaceSkill(db, before, after)
  return shownSkill(db, after)
}

/** Turns a skill that is built in on or off; nothing else of it changes. */
async function turn({ db, body: { enabledByDefault }, world }: HandlerInput<Routes['update']>, before: SkillRow) {
  const after = changedRow(before, withoutUndefined({ enabledByDefault }), world.now())
  const { workspaceId, enabledByDefault: enabled, updatedAt: now } = after
  if (after !== before) await putBuiltinSetting(db, { workspaceId, enabled, now })
  return shownSkill(db, after)
}

async function remove(input: HandlerInput<Routes['delete']>) {
  const { db, caller, params, world } = input
  const skill = await lookUpSkill(db, caller, params.skillId)
  if (isOfPlugin(skill)) fail('skill_replace_forbidden')
  if (skill.sourceType === 'builtin') fail('builtin_skill_delete_forbidden')
  if (caller.kind === 'agent') {
    const change = { caller, routeId: skillRoutes.delete.id, params: { skillId: skill.id } }
    return raisePlatformChange({ ...input, body: null }, change)
  }
  await forgetSkillOfShares(db, skill.id)
  await removeOverridesOfSkill(db, skill.id)
  await removeSkill(db, skill.id)
  await retireBundle(db, skill.bundleId, world.now())
  return undefined
}

/** Finds the skill and the agent of an override: a person and an agent both name the agent, and an agent only itself. */
async function ownOverride({
  db,
  caller,
  params,
}: Pick<HandlerInput<Routes['setOverride']>, 'db' | 'caller' | 'params'>) {
  const agent = await agentOfSkills(db, caller, params.agentId)
  if (caller.kind === 'agent' && caller.agentRef !== agent.id) fail('agent_self_only', { param: 'agentId' })
  return { skill: await lookUpSkill(db, caller, params.skillId), agentRef: agent.id }
}

async function content(
  { db, caller, params, query }: HandlerInput<Routes['content']>,
  { blobs }: Pick<Dependencies, 'blobs'>,
) {
  const skill = await lookUpSkill(db, caller, params.skillId)
  const { path } = query
  const read = await readFile(db, skill, { path, blobs })
  if (read === null) return fail('skill_file_not_found', { param: 'path' })
  const { file, bytes } = read
  const isCut = bytes.length < file.sizeBytes
  const text = shownText(bytes, isCut)
  return {
    object: 'skill_file' as const,
    path: file.path,
    kind: kindOf(file.path),
    sizeBytes: file.sizeBytes,
    executable: file.executable,
    content: text,
    contentBase64: text === null ? bytes.toString('base64') : null,
    truncated: isCut,
  }
}

/** Reads the first bytes of a file, as many as are shown; null: there is no such file. */
async function readFile(db: Db, skill: SkillRow, { path, blobs }: { path: string } & Pick<Dependencies, 'blobs'>) {
  if (isBuiltin(skill)) return readBuiltinFile(path)
  const bundle = await findBundle(db, skill.workspaceId, skill.bundleId)
  return bundle && orStorageFailed(() => readBundleFile(bundle, { path, most: skillLimits.previewBytes, blobs }))
}
