import { z } from 'zod'
import { fail } from '../../../../shared/api/errors.ts'
import { skillRoutes } from '../../../../shared/api/skills.ts'
import { answer, type BeforeInput } from '../../../http/implement.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { raisePlatformChange } from '../../platform-changes/steps/raise.ts'
import { causeOfCaller } from '../../runs/cause.ts'
import { decodeBundle } from '../bundle.ts'
import { retireBundle } from '../bundle-store.ts'
import { lookUpSkill } from '../own/lookup.ts'
import { putOverride } from '../override-store.ts'
import { hasFixedWords } from '../rules.ts'
import {
  bundleFacts,
  keepBundle,
  newSkill,
  shownStaged,
  stagedBundle,
  storeDecoded,
  takeStaged,
  type NewBundle,
} from '../steps/bundle.ts'
import { shownSkill } from '../steps/own/present.ts'
import { insertSkill, listTakenSlugs, replaceSkill, type SkillRow } from '../store.ts'

/** Writes that bring files: these are checked and stored before the transaction. */
type Dependencies = Pick<ResourceDependencies, 'blobs' | 'costly'>
type Create = BeforeInput<typeof skillRoutes.create>
type Replace = BeforeInput<typeof skillRoutes.replaceBundle>

export async function prepareCreate(input: Create, deps: Dependencies): Promise<NewBundle> {
  await checkCreate(input)
  return storeDecoded(await decodeBundle(input.body.bundle.files), { caller: input.caller, ...deps })
}

async function checkCreate({ db, caller, body }: Create): Promise<void> {
  if (caller.kind === 'agent' && body.enabledByDefault === true)
    fail('agent_skill_default_forbidden', { param: 'enabledByDefault' })
  const taken = await listTakenSlugs(db, caller.workspaceId, [body.slug])
  if (taken.size > 0) fail('duplicate_skill_slug', { param: 'slug' })
}

export async function createSkill(input: Create, stored: NewBundle) {
  const { db, caller, body, world } = input
  await checkCreate(input)
  const bundle = await keepBundle({ db, world, workspaceId: caller.workspaceId }, stored)
  const { slug, name, description, source } = body
  const skill = newSkill(input, bundle, {
    slug,
    name,
    description: description === undefined ? bundle.frontMatter.description : description,
    sourceType: source?.type ?? 'imported',
    sourceLabel: source?.label ?? null,
    enabledByDefault: body.enabledByDefault ?? caller.kind === 'person',
    writtenByUuid: await causeOfCaller(db, caller),
  })
  await insertSkill(db, skill)
  if (caller.kind === 'agent') await putOverride(db, { skillId: skill.id, agentRef: caller.agentRef, enabled: true })
  return answer(201, await shownSkill(db, skill))
}

/** The bundle that an agent's request keeps until it is approved. */
export const replacement = z.object({ bundle: stagedBundle })
export type Replacement = NewBundle | z.infer<typeof replacement>

export async function prepareReplace(input: Replace, deps: Dependencies): Promise<Replacement> {
  await replaceable(input)
  return storeDecoded(await decodeBundle(input.body.bundle.files), { caller: input.caller, ...deps })
}

async function replaceable({ db, caller, params }: Pick<Replace, 'db' | 'caller' | 'params'>): Promise<SkillRow> {
  const skill = await lookUpSkill(db, caller, params.skillId)
  return hasFixedWords(skill) ? fail('skill_replace_forbidden') : skill
}

export async function replaceBundle(input: Replace, made: Replacement) {
  const { db, caller, world } = input
  const before = await replaceable(input)
  const { workspaceId } = before
  if (caller.kind === 'agent') {
    if (!('blobId' in made)) return fail('platform_change_requires_run')
    const id = world.id('skb_')
    const change = { caller, routeId: skillRoutes.replaceBundle.id, params: { skillId: before.id } }
    const raised = await raisePlatformChange({ ...input, body: { bundle: shownStaged(id, made) } }, change)
    await keepBundle({ db, world, workspaceId }, made, { id, changeId: raised.body.approvalId })
    return raised
  }
  const bundle =
    'blobId' in made
      ? await keepBundle({ db, world, workspaceId }, made)
      : await takeStaged({ db, workspaceId }, made.bundle.bundleId)
  const now = world.now()
  const after = {
    ...before,
    ...bundleFacts(bundle),
    bundleVersion: before.bundleVersion + 1,
    unavailableReason: null,
    writtenByUuid: await causeOfCaller(db, caller),
    updatedAt: now,
  }
  await replaceSkill(db, before, after)
  await retireBundle(db, before.bundleId, now)
  return shownSkill(db, after)
}
