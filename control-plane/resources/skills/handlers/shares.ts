import type { WorkspaceUuid } from '../../../../shared/lib/ids.ts'
import { z } from 'zod'
import { fail } from '../../../../shared/api/errors.ts'
import { toTimestamp } from '../../../../shared/api/ids.ts'
import { beforeOf, pageByTime, timeAndId } from '../../../../shared/api/paging.ts'
import { skillShareId, skillKeys } from '../../../../shared/api/skill-fields.ts'
import { skillShareRoutes } from '../../../../shared/api/skill-shares.ts'
import type { Db } from '../../../db/open.ts'
import { answer, implement, prepared, type HandlerInput, type ImplementedRoute } from '../../../http/implement.ts'
import { hashToken, newToken } from '../../../http/token-hash.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { raisePlatformChange } from '../../platform-changes/steps/raise.ts'
import { causeOfCaller } from '../../runs/cause.ts'
import { findWorkspace } from '../../workspaces/store.ts'
import { findBundle, type BundleRow } from '../bundle-store.ts'
import { lookUpSkill } from '../own/lookup.ts'
import { putOverride } from '../override-store.ts'
import { presentFileOf, presentShare } from '../own/present.ts'
import { hasFixedWords, isShareOver, slugsForCopy } from '../rules.ts'
import { findShare, findShareByToken, insertShare, listShares, revokeShare, type ShareRow } from '../own/share-store.ts'
import {
  copyBundle,
  keepBundle,
  newSkill,
  shownStaged,
  stagedBundle,
  takeStaged,
  type NewBundle,
} from '../steps/bundle.ts'
import { shownSkill } from '../steps/own/present.ts'
import { findSkill, insertSkill, listTakenSlugs, type SkillRow } from '../store.ts'

type Dependencies = Pick<ResourceDependencies, 'blobs' | 'publicUrl'>
type Routes = typeof skillShareRoutes

export function skillShareHandlers({ blobs, publicUrl }: Dependencies): ImplementedRoute[] {
  return implement(skillShareRoutes, {
    async share({ db, caller, params, body, world }) {
      const skill = await lookUpSkill(db, caller, params.skillId)
      if (hasFixedWords(skill)) fail('skill_share_forbidden')
      const now = world.now()
      const expiresAt = body.expiresAt == null ? null : Date.parse(body.expiresAt)
      if (expiresAt !== null && expiresAt <= now)
        fail('validation_error', { param: 'expiresAt', message: 'The time is in the past.' })
      const token = newToken(world, 'svc_shr_')
      const share: ShareRow = {
        id: world.id('shr_'),
        workspaceId: skill.workspaceId,
        skillId: skill.id,
        tokenHash: hashToken(token),
        createdByUuid: caller.personUuid,
        expiresAt,
        revokedAt: null,
        version: 1,
        createdAt: now,
      }
      await insertShare(db, share)
      return answer(201, { ...presentShare(share), token, url: `${publicUrl()}/api/v1/skills/shared/${token}` })
    },

    async list({ db, caller, params, query }) {
      const skill = await lookUpSkill(db, caller, params.skillId)
      const rows = await listShares(db, { skillId: skill.id, ...beforeOf(query, shareCursor), limit: query.limit })
      return pageByTime(rows, query.limit, presentShare)
    },

    async revoke({ db, caller, params, world }) {
      const skill = await lookUpSkill(db, caller, params.skillId)
      const share = await findShare(db, skill.id, params.shareId)
      if (share === null) return fail('share_not_found', { param: 'shareId' })
      await revokeShare(db, share.id, world.now())
    },

    async preview({ db, params, world }) {
      const { share, skill, bundle } = await sharedSkillOf(db, params.shareToken, world.now())
      return {
        object: 'shared_skill' as const,
        name: skill.name,
        slug: skill.slug,
        description: skill.description,
        version: skill.bundleVersion,
        fileCount: skill.fileCount,
        totalBytes: skill.totalBytes,
        bundleHash: bundle.bundleHash,
        files: bundle.files.map(presentFileOf),
        expiresAt: toTimestamp(share.expiresAt),
      }
    },

    install: prepared<Routes['install'], Copy>({
      async before({ db, caller, params, body, world }) {
        const { share, skill, bundle } = await sharedSkillOf(db, params.shareToken, world.now())
        await checkTarget(db, caller.workspaceId, body.targetCompanyId)
        const { slug, name, description } = skill
        const { workspaceId } = caller
        return { shareId: share.id, slug, name, description, ...(await copyBundle(bundle, { workspaceId, blobs })) }
      },
      handle: install,
      giveUp: async (made) => void ('blobId' in made && (await blobs.giveUp(made.blobId))),
      staged: stagedCopy,
    }),
  })
}

const shareCursor = timeAndId(skillShareId)

/** Fails with `share_not_found` and `share_gone`. */
async function sharedSkillOf(
  db: Db,
  token: string,
  now: number,
): Promise<{ share: ShareRow; skill: SkillRow; bundle: BundleRow }> {
  const share = await findShareByToken(db, hashToken(token))
  if (share === null) return fail('share_not_found', { param: 'shareToken' })
  const gone = () => fail('share_gone', { param: 'shareToken' })
  if (isShareOver(share, now) || share.skillId === null) return gone()
  if ((await findWorkspace(db, share.workspaceId)) === null) return gone()
  const skill = await findSkill(db, share.workspaceId, share.skillId)
  const bundle = skill && (await findBundle(db, skill.workspaceId, skill.bundleId))
  return skill === null || bundle === null ? gone() : { share, skill, bundle }
}

/** A token works in its own workspace, and a session in the one that it is told to work in. */
async function checkTarget(db: Db, workspaceId: WorkspaceUuid, target: string): Promise<void> {
  const own = await findWorkspace(db, workspaceId)
  const names: string[] = own === null ? [] : [own.id, own.publicId]
  if (!names.includes(target.toLowerCase()) && !names.includes(target))
    fail('share_forbidden', { param: 'targetCompanyId' })
}

const copied = z.object({
  shareId: z.string(),
  slug: skillKeys.slug,
  name: z.string(),
  description: z.string().nullable(),
})
type Copied = z.infer<typeof copied>
/** The copy that an agent's request keeps until it is approved. */
const stagedCopy = copied.extend({ bundle: stagedBundle })
type Copy = (Copied & NewBundle) | z.infer<typeof stagedCopy>

async function install(input: HandlerInput<Routes['install']>, made: Copy) {
  const { db, caller, world } = input
  const { workspaceId } = caller
  const { shareId, slug, name, description } = made
  if (caller.kind === 'agent') {
    if (!('blobId' in made)) return fail('platform_change_requires_run')
    const id = world.id('skb_')
    const body = { shareId, slug, name, description, bundle: shownStaged(id, made) }
    // The token of the link is nobody's to read there.
    const change = { caller, routeId: skillShareRoutes.install.id, params: { shareToken: shareId } }
    const raised = await raisePlatformChange({ ...input, body }, change)
    await keepBundle({ db, world, workspaceId }, made, { id, changeId: raised.body.approvalId })
    return raised
  }
  const bundle =
    'blobId' in made
      ? await keepBundle({ db, world, workspaceId }, made)
      : await takeStaged({ db, workspaceId }, made.bundle.bundleId)
  // A skill that an agent asked for is on for that agent alone, like what it adds by itself.
  const agentRef = caller.onBehalfOf
  const skill = newSkill({ caller, world }, bundle, {
    slug: await freeSlug(db, workspaceId, slug),
    name,
    description,
    sourceType: 'shared',
    sourceLabel: null,
    enabledByDefault: agentRef === undefined,
    writtenByUuid: await causeOfCaller(db, caller),
  })
  await insertSkill(db, skill)
  if (agentRef !== undefined) await putOverride(db, { skillId: skill.id, agentRef, enabled: true })
  return answer(201, await shownSkill(db, skill))
}

async function freeSlug(db: Db, workspaceId: WorkspaceUuid, slug: string): Promise<string> {
  let some: string[] = []
  for (const each of slugsForCopy(slug)) {
    some.push(each)
    if (some.length < slugsAtOnce) continue
    const free = await firstFree(db, workspaceId, some)
    if (free !== null) return free
    some = []
  }
  return fail('transient_conflict')
}

const slugsAtOnce = 20

async function firstFree(db: Db, workspaceId: WorkspaceUuid, slugs: readonly string[]): Promise<string | null> {
  const taken = await listTakenSlugs(db, workspaceId, slugs)
  return slugs.find((slug) => !taken.has(slug)) ?? null
}
