import { z } from 'zod'
import { fail } from '../../../../shared/api/errors.ts'
import { repoInstall, skillKeys, type SkippedSkill } from '../../../../shared/api/skill-fields.ts'
import { skillRepoRoutes } from '../../../../shared/api/skill-repos.ts'
import { answer, type BeforeInput, implement, type ImplementedRoute, prepared } from '../../../http/implement.ts'
import { readSource, repoKey } from '../../../repo-source/source.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { raisePlatformChange } from '../../platform-changes/steps/raise.ts'
import { causeOfCaller } from '../../runs/cause.ts'
import { namedWorkspace } from '../../workspaces/lookup.ts'
import { findBundle, retireBundle } from '../bundle-store.ts'
import { putOverride } from '../override-store.ts'
import {
  bundleFacts,
  keepBundle,
  newSkill,
  shownStaged,
  stagedBundle,
  takeStaged,
  type NewBundle,
} from '../steps/bundle.ts'
import { shownSummaries } from '../steps/own/present.ts'
import { findOwnSkill, isFree, slugTaken, takeSkills, withRepo, type RepoSkill } from '../steps/repo.ts'
import { insertSkill, replaceSkill, type SkillRow } from '../store.ts'

type Dependencies = Pick<ResourceDependencies, 'blobs' | 'costly' | 'repoSources'>
type Routes = typeof skillRepoRoutes
type Install = BeforeInput<Routes['install']>

export function skillRepoHandlers(deps: Dependencies): ImplementedRoute[] {
  return implement(skillRepoRoutes, {
    install: prepared<Routes['install'], Found>({
      before: (input) => find(input, deps),
      handle: install,
      async giveUp({ skills }) {
        for (const skill of skills) if ('blobId' in skill) await deps.blobs.giveUp(skill.blobId)
      },
      staged,
    }),
  })
}

/** The skills that an agent's request keeps until it is approved: enough to install exactly that, without asking the repository again. */
const staged = z.object({
  url: z.string(),
  ref: z.string().nullable(),
  resolvedSha: z.string(),
  skills: z.array(
    z.object({
      slug: skillKeys.slug,
      name: z.string(),
      description: z.string().nullable(),
      path: z.string(),
      bundle: stagedBundle,
    }),
  ),
  skipped: repoInstall.shape.skipped,
})
type FoundSkill = (RepoSkill & NewBundle) | z.infer<typeof staged>['skills'][number]
/** `url`: the one spelling of the repository. */
type Found = Omit<z.infer<typeof staged>, 'skills'> & { skills: FoundSkill[] }

async function find(input: Install, deps: Dependencies): Promise<Found> {
  const { db, caller, params, body, signal } = input
  await namedWorkspace(db, caller, params.workspaceId)
  const { source, flaw } = readSource(body)
  if (source === null) return fail('invalid_skill_source', flaw)
  const { workspaceId } = caller
  return withRepo(source, { repoSources: deps.repoSources, workspaceId, signal, codes }, async (repo) => ({
    url: repoKey(source.url),
    ref: source.ref,
    ...(await takeSkills(repo, { db, caller, source, wanted: body.skills, deps })),
  }))
}

const codes = {
  refused: 'invalid_skill_source',
  noFolder: 'no_skills_found',
  unreadable: 'skill_source_unreadable',
} as const

async function install(input: Install, found: Found) {
  const { db, caller, world, params } = input
  const { resolvedSha } = found
  await namedWorkspace(db, caller, params.workspaceId)
  if (caller.kind === 'agent' && found.skills.length > 0) return askFirst(input, found)
  const installed: SkillRow[] = []
  const skipped: SkippedSkill[] = [...found.skipped]
  for (const skill of found.skills) {
    const row = await place({ db, caller, world }, { found, skill })
    if (row !== null) installed.push(row)
    else skipped.push({ slug: skill.slug, path: skill.path, reason: 'slug_taken', message: slugTaken })
  }
  const object = 'skill_repo_install' as const
  return answer(201, { object, installed: await shownSummaries(db, installed), skipped, resolvedSha })
}

async function askFirst(input: Install, found: Found) {
  const { db, caller, world, params } = input
  if (caller.kind !== 'agent') return fail('platform_change_requires_run')
  const named = found.skills.map((skill) => ('blobId' in skill ? { id: world.id('skb_'), skill } : null))
  const kept = named.filter((one) => one !== null)
  const skills = kept.map(({ id, skill: { slug, name, description, path, ...bundle } }) => ({
    slug,
    name,
    description,
    path,
    bundle: shownStaged(id, bundle),
  }))
  const change = { caller, routeId: skillRepoRoutes.install.id, params: { workspaceId: params.workspaceId } }
  const raised = await raisePlatformChange({ ...input, body: { ...found, skills } }, change)
  const { workspaceId } = caller
  for (const { id, skill } of kept)
    await keepBundle({ db, world, workspaceId }, skill, { id, changeId: raised.body.approvalId })
  return raised
}

/** Adds the skill, or brings it up to date; null when another one has its slug. */
async function place(
  { db, caller, world }: Pick<Install, 'db' | 'caller' | 'world'>,
  { found, skill }: { found: Found; skill: FoundSkill },
): Promise<SkillRow | null> {
  const { workspaceId } = caller
  const { slug, name, description, path } = skill
  const before = await findOwnSkill(db, workspaceId, slug)
  if (!isFree(slug, { known: before, url: found.url })) return null
  const from = { repoUrl: found.url, repoPath: path, repoSha: found.resolvedSha }
  const { bundleHash } = 'blobId' in skill ? skill : skill.bundle
  const old = before && (await findBundle(db, workspaceId, before.bundleId))
  const now = world.now()
  if (before !== null && old?.bundleHash === bundleHash) {
    const after = { ...before, ...from, updatedAt: now }
    await replaceSkill(db, before, after)
    return after
  }
  const bundle =
    'blobId' in skill
      ? await keepBundle({ db, world, workspaceId }, skill)
      : await takeStaged({ db, workspaceId }, skill.bundle.bundleId)
  const writtenByUuid = await causeOfCaller(db, caller)
  if (before !== null) {
    const bundleVersion = before.bundleVersion + 1
    const facts = { ...bundleFacts(bundle), bundleVersion, unavailableReason: null }
    const after = { ...before, ...from, ...facts, writtenByUuid, updatedAt: now }
    await replaceSkill(db, before, after)
    await retireBundle(db, before.bundleId, now)
    return after
  }
  // A skill that an agent asked for is on for that agent alone, like what it adds by itself.
  const agentRef = caller.kind === 'person' ? caller.onBehalfOf : undefined
  const source = { sourceType: 'imported', sourceLabel: null } as const
  const named = {
    slug,
    name,
    description,
    ...source,
    enabledByDefault: agentRef === undefined,
    writtenByUuid,
  }
  const row = { ...newSkill({ caller, world }, bundle, named), ...from }
  await insertSkill(db, row)
  if (agentRef !== undefined) await putOverride(db, { skillId: row.id, agentRef, enabled: true })
  return row
}
