import { idFrom, type AgentRef, type RunId, type WorkspaceUuid } from '../../shared/lib/ids.ts'
import { expect } from 'vitest'
import { inTransaction } from '../../control-plane/db/transaction.ts'
import {
  adoptBundle,
  findBundle,
  findBundleByHash,
  listBundles,
  listGoneBundles,
  listStagedBundles,
  removeBundle,
  retireBundle,
} from '../../control-plane/resources/skills/bundle-store.ts'
import {
  findBuiltin,
  putBuiltinSetting,
  removeBuiltinOverride,
} from '../../control-plane/resources/skills/own/builtin-store.ts'
import { listEffectiveSkills, setUnavailable } from '../../control-plane/resources/skills/effective-store.ts'
import {
  listOverrides,
  putOverride,
  removeOverride,
  removeOverridesOfSkill,
} from '../../control-plane/resources/skills/override-store.ts'
import { findPluginByReference, listPluginsByIds } from '../../control-plane/resources/skills/plugin-store.ts'
import {
  findShare,
  findShareByToken,
  forgetSkillOfShares,
  listShares,
  revokeShare,
} from '../../control-plane/resources/skills/own/share-store.ts'
import {
  countSkills,
  findSkill,
  listSkills,
  listSkillsBySlug,
  listSkillsOfPlugin,
  listTakenSlugs,
  removeSkill,
  replaceSkill,
} from '../../control-plane/resources/skills/store.ts'
import { realWorld } from '../../shared/lib/world.ts'
import { closePlatformChange, insertPlatformChange } from '../../control-plane/resources/platform-changes/store.ts'
import { onBoth } from '../kit/database.ts'
import { at, seedWorkspace } from './seed.ts'
import { seedPlugin } from './plugin-rows.ts'
import { seedBundle, seedShare, seedSkill } from './skill-rows.ts'

onBoth('a skill comes back as it was stored, and is changed by one writer at a time', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const stored = await seedSkill(root, workspaceId, { description: 'Über', unavailableReason: 'bundle_unreadable' })
  expect(await findSkill(root, workspaceId, stored.id)).toEqual(stored)
  expect(await findSkill(root, await seedWorkspace(root), stored.id)).toBeNull()
  const after = { ...stored, enabledByDefault: false, bundleVersion: 2 }
  await replaceSkill(root, stored, after)
  expect(await findSkill(root, workspaceId, stored.id)).toEqual({ ...after, version: 2 })
  await expect(replaceSkill(root, stored, { ...stored, name: 'x' })).rejects.toMatchObject({
    code: 'transient_conflict',
  })
  await removeSkill(root, stored.id)
  expect(await countSkills(root, workspaceId)).toBe(0)
})

onBoth('a slug is that of one skill, and of one more in each plugin', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const own = await seedSkill(root, workspaceId, { slug: 'notes' })
  await expect(seedSkill(root, workspaceId, { slug: 'notes' })).rejects.toThrow(/unique/i)
  const tools = await seedPlugin(root, workspaceId)
  const ofPlugin = await seedSkill(root, workspaceId, { slug: 'notes', pluginId: tools.id, createdAt: at + 1 })
  await expect(seedSkill(root, workspaceId, { slug: 'notes', pluginId: tools.id })).rejects.toThrow(/unique/i)
  expect((await listSkillsBySlug(root, workspaceId, 'notes')).map(({ id }) => id)).toEqual([own.id, ofPlugin.id])
  await removeSkill(root, own.id)
  expect(await listTakenSlugs(root, workspaceId, ['notes', 'x'])).toEqual(new Set())
  const known = { id: tools.id, workspaceId, name: 'tools', enabled: true }
  expect(await findPluginByReference(root, workspaceId, 'tools')).toEqual(known)
  expect(await findPluginByReference(root, workspaceId, tools.id)).toEqual(known)
  expect(await findPluginByReference(root, await seedWorkspace(root), tools.id)).toBeNull()
  expect(await listPluginsByIds(root, [tools.id, idFrom('plug_none')])).toEqual(new Map([[tools.id, known]]))
})

onBoth('skills are listed by each filter, page by page', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const tools = await seedPlugin(root, workspaceId)
  const first = await seedSkill(root, workspaceId, { name: 'Alpha', enabledByDefault: false })
  const second = await seedSkill(root, workspaceId, { repoUrl: 'https://x/y', createdAt: at + 1 })
  const third = await seedSkill(root, workspaceId, { sourceType: 'plugin', pluginId: tools.id, createdAt: at + 2 })
  await seedSkill(root, await seedWorkspace(root))
  const list = async (filter: object) =>
    (await listSkills(root, { workspaceId, limit: 10, ...filter })).map(({ id }) => id)
  expect(await list({})).toEqual([third.id, second.id, first.id])
  expect(await list({ before: third })).toEqual([second.id, first.id])
  expect(await list({ after: first })).toEqual([second.id, third.id])
  expect(await list({ limit: 1 })).toEqual([third.id, second.id])
  expect(await list({ enabledByDefault: false })).toEqual([first.id])
  expect(await list({ isFromRepo: true })).toEqual([second.id])
  expect(await list({ sourceType: 'plugin' })).toEqual([third.id])
  expect(await list({ pluginId: tools.id })).toEqual([third.id])
  expect(await listSkillsOfPlugin(root, workspaceId, tools.id)).toEqual([third])
  expect(await listSkillsOfPlugin(root, await seedWorkspace(root), tools.id)).toEqual([])
  expect(await list({ q: 'alph' })).toEqual([first.id])
})

onBoth('an agent has what it was given last', async ({ root }) => {
  const skill = await seedSkill(root, await seedWorkspace(root))
  const of = { skillId: skill.id, agentRef: idFrom<AgentRef>('agt_1') }
  await removeOverride(root, of)
  await putOverride(root, { ...of, enabled: true })
  await putOverride(root, { ...of, enabled: false })
  await putOverride(root, { ...of, agentRef: idFrom('agt_2'), enabled: true })
  expect(await listOverrides(root, idFrom('agt_1'), [skill.id, idFrom('x')])).toEqual(new Map([[skill.id, false]]))
  await removeOverride(root, of)
  expect(await listOverrides(root, idFrom('agt_1'), [skill.id])).toEqual(new Map())
  await removeOverridesOfSkill(root, skill.id)
  expect(await listOverrides(root, idFrom('agt_2'), [skill.id])).toEqual(new Map())
})

onBoth(
  'of the skill that is built in is kept what was set last, for the workspace and for an agent',
  async ({ root }) => {
    const [workspaceId, other] = [await seedWorkspace(root), await seedWorkspace(root)]
    const seen = async (of: { workspaceId: WorkspaceUuid; agentRef?: AgentRef }) => {
      const facts = await findBuiltin(root, of)
      return facts && [facts.enabled, facts.updatedAt, facts.override]
    }
    const agent = { workspaceId, agentRef: idFrom<AgentRef>('agt_1') }
    expect(await seen(agent)).toEqual([null, null, null])
    await putBuiltinSetting(root, { ...agent, enabled: true, now: at })
    await putBuiltinSetting(root, { ...agent, enabled: false, now: at + 1 })
    expect(await seen(agent)).toEqual([null, null, false])
    await putBuiltinSetting(root, { workspaceId, enabled: false, now: at + 2 })
    expect(await seen(agent)).toEqual([false, at + 2, false])
    expect(await seen({ workspaceId, agentRef: idFrom('agt_2') })).toEqual([false, at + 2, null])
    expect(await seen({ workspaceId: other, agentRef: idFrom('agt_1') })).toEqual([null, null, null])
    await removeBuiltinOverride(root, agent)
    await removeBuiltinOverride(root, agent)
    expect(await seen(agent)).toEqual([false, at + 2, null])
    const plugin = await seedPlugin(root, workspaceId)
    await seedSkill(root, workspaceId, { slug: 'svc', pluginId: plugin.id })
    expect(await seen({ workspaceId })).toEqual([false, at + 2, null])
    const own = await seedSkill(root, workspaceId, { slug: 'svc' })
    expect(await seen(agent)).toBeNull()
    await removeSkill(root, own.id)
    expect(await seen(agent)).toEqual([false, at + 2, null])
    expect(await listTakenSlugs(root, other, ['svc', 'x'])).toEqual(new Set(['svc']))
  },
)

onBoth('a share link is found by the hash of its token, is revoked once, and outlives its skill', async ({ root }) => {
  const skill = await seedSkill(root, await seedWorkspace(root))
  const share = await seedShare(root, skill, { expiresAt: at + 5 })
  const later = await seedShare(root, skill, { createdAt: at + 1 })
  expect(await findShareByToken(root, share.tokenHash)).toEqual(share)
  expect(await findShareByToken(root, 'other')).toBeNull()
  expect(await findShare(root, skill.id, share.id)).toEqual(share)
  expect(await findShare(root, idFrom('other'), share.id)).toBeNull()
  expect((await listShares(root, { skillId: skill.id, limit: 5 })).map(({ id }) => id)).toEqual([later.id, share.id])
  await revokeShare(root, share.id, at + 2)
  await revokeShare(root, share.id, at + 3)
  expect((await findShare(root, skill.id, share.id))?.revokedAt).toBe(at + 2)
  await forgetSkillOfShares(root, skill.id)
  expect((await findShareByToken(root, later.tokenHash))?.skillId).toBeNull()
})

onBoth('a bundle goes when it is retired for long, or when its change is closed without it', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const seedChange = async () => {
    const id = realWorld.id('apr_')
    const of = {
      agentRef: idFrom<AgentRef>('agt_1'),
      runId: idFrom<RunId>('run_1'),
      routeId: 'skills.replaceBundle',
      source: 'api',
    } as const
    await insertPlatformChange(root, { id, workspaceId, ...of, params: {}, body: null, createdAt: at })
    return id
  }
  const kept = await seedBundle(root, workspaceId)
  const retired = await seedBundle(root, workspaceId)
  const [open, rejected] = [await seedChange(), await seedChange()]
  const staged = await seedBundle(root, workspaceId, { changeId: open })
  const stale = await seedBundle(root, workspaceId, { changeId: rejected })
  await closePlatformChange(root, { id: rejected, status: 'rejected', result: null })
  await retireBundle(root, retired.id, at)
  const gone = async (retiredBefore: number) =>
    (await listGoneBundles(root, { retiredBefore, limit: 10 })).map(({ id }) => id)
  expect(await gone(at)).toEqual([stale.id])
  expect(await gone(at + 1)).toEqual([retired.id, stale.id])
  expect(await listStagedBundles(root, workspaceId, open)).toEqual([staged])
  expect(await listStagedBundles(root, await seedWorkspace(root), open)).toEqual([])
  await inTransaction(root, (tx) => adoptBundle(tx, staged.id))
  expect(await findBundle(root, workspaceId, staged.id)).toEqual({ ...staged, changeId: null })
  await expect(inTransaction(root, (tx) => adoptBundle(tx, staged.id))).rejects.toMatchObject({
    code: 'transient_conflict',
  })
  const removed = []
  for (const { id } of [kept, retired, staged, stale]) removed.push(await removeBundle(root, id))
  expect(removed).toEqual([false, true, false, true])
  expect(await findBundle(root, await seedWorkspace(root), kept.id)).toBeNull()
})

onBoth('an agent has what is on for it: its own first, then what the workspace has on', async ({ root }) => {
  const workspaceId = await seedWorkspace(root)
  const on = await seedPlugin(root, workspaceId)
  const off = await seedPlugin(root, workspaceId, { name: 'off', enabled: false })
  const seed = (slug: string, changes: object) => seedSkill(root, workspaceId, { slug, ...changes })
  await seed('usual', { createdAt: at + 1, unavailableReason: 'not_materialized', writtenByUuid: 'u1' })
  await seed('first', {})
  const own = await seed('own', { createdAt: at + 2, enabledByDefault: false })
  const not = await seed('not', {})
  await seed('none', { enabledByDefault: false })
  await seed('of-plugin', { pluginId: on.id, createdAt: at + 3 })
  const dead = await seed('of-dead-plugin', { pluginId: off.id })
  await seedSkill(root, await seedWorkspace(root))
  const put = (skillId: string, enabled: boolean, agentId = 'agt_1') =>
    putOverride(root, { skillId: idFrom(skillId), agentRef: idFrom(agentId), enabled })
  for (const skill of [own, dead]) await put(skill.id, true)
  await put(not.id, false)
  await put(not.id, true, 'agt_2')
  const list = async (agentRef: string, limit = 10) =>
    (await listEffectiveSkills(root, { workspaceId, agentRef: idFrom(agentRef), limit })).map(({ slug }) => slug)
  expect(await list('agt_1')).toEqual(['own', 'first', 'usual', 'of-plugin'])
  expect(await list('agt_1', 2)).toEqual(['own', 'first'])
  expect(await list('agt_2')).toEqual(['not', 'first', 'usual', 'of-plugin'])
  const [, , usual] = await listEffectiveSkills(root, { workspaceId, agentRef: idFrom('agt_1'), limit: 10 })
  expect(usual).toMatchObject({
    unavailableReason: 'not_materialized',
    writtenByUuid: 'u1',
    bundleHash: 'f'.repeat(64),
  })
  expect(usual?.frontMatter.allowedTools).toEqual(['Read'])
})

onBoth(
  'files are found by their hash unless they only wait for approval, and are said to be there or not',
  async ({ root }) => {
    const [workspaceId, other] = [await seedWorkspace(root), await seedWorkspace(root)]
    const hash = 'a'.repeat(64)
    await seedBundle(root, workspaceId, { bundleHash: hash, changeId: 'apr_1' })
    expect(await findBundleByHash(root, workspaceId, hash)).toBeNull()
    const bundle = await seedBundle(root, workspaceId, { bundleHash: hash, retiredAt: at })
    expect(await findBundleByHash(root, workspaceId, hash)).toEqual(bundle)
    expect(await listBundles(root, workspaceId, [bundle.id, idFrom('skb_none')])).toEqual(
      new Map([[bundle.id, bundle]]),
    )
    expect(await listBundles(root, other, [bundle.id])).toEqual(new Map())
    expect(await findBundleByHash(root, other, hash)).toBeNull()
    const skill = await seedSkill(root, workspaceId, { bundleId: bundle.id })
    const kept = await seedSkill(root, workspaceId)
    const set = (reason: 'not_materialized' | null, of = workspaceId) =>
      setUnavailable(root, { workspaceId: of, bundleHash: hash, reason })
    const reasons = async () => [
      (await findSkill(root, workspaceId, skill.id))?.unavailableReason,
      (await findSkill(root, workspaceId, kept.id))?.unavailableReason,
    ]
    await set('not_materialized', other)
    expect(await reasons()).toEqual([null, null])
    await set('not_materialized')
    expect(await reasons()).toEqual(['not_materialized', null])
    await replaceSkill(root, skill, { ...skill, name: 'New' })
    expect(await reasons()).toEqual(['not_materialized', null])
    await set(null)
    expect(await reasons()).toEqual([null, null])
  },
)
