import type { PersonUuid } from '../../../shared/lib/ids.ts'
import {
  runSkillLimits,
  toldLeftOut,
  type LeftOutSkill,
  type OfferedSkill,
  type SkillLeftOutReason,
} from '../../../shared/runs/skills.ts'
import { canHaveSkills, type RunSpec } from '../../../shared/runs/spec.ts'
import type { EffectiveSkill } from './effective-store.ts'

// The skills of an agent as they stand in the spec of a run (pure).

type SkillsOfSpec = Required<Pick<RunSpec, 'skills' | 'skillsLeftOut' | 'hasSvcSkill'>>
export const noSkills: SkillsOfSpec = { skills: null, skillsLeftOut: null, hasSvcSkill: null }

/** The skills of an agent, also those beyond what a run takes. */
export interface HadSkills {
  skills: readonly EffectiveSkill[]
  /** The run is to have the skill that is built in. */
  hasSvcSkill: boolean
}

/** The number of an agent's skills that are looked at: what a run takes, and those beyond it that are named. */
export const mostSkills = runSkillLimits.skills + toldLeftOut

/**
 * The order is that of the slugs, whatever the order in which they were added. Of several with one slug, which plugins may bring, the one
 * of no plugin is had, else that of the plugin with the least id.
 */
export function skillsOfSpec(
  { skills: effective, hasSvcSkill }: HadSkills,
  spec: Pick<RunSpec, 'harness' | 'protocol'>,
): SkillsOfSpec {
  // Nobody chose the one that is built in, so nobody is told that a harness takes none.
  if (!canHaveSkills(spec)) {
    const leftOut = effective.map(({ slug }) => ({ slug, reason: 'harness' }) as const)
    return { ...told([], leftOut), hasSvcSkill: null }
  }
  const byPlugin = effective.toSorted((a, b) => compareTexts(a.pluginId ?? '', b.pluginId ?? ''))
  const named = new Map(byPlugin.toReversed().map((skill) => [skill.slug, skill]))
  const had = effective.filter((skill) => named.get(skill.slug) === skill)
  const others = effective.filter((skill) => named.get(skill.slug) !== skill)
  const leftOut = [
    ...others.map(({ slug }) => ({ slug, reason: 'name_taken' }) as const),
    ...had.slice(runSkillLimits.skills).map(({ slug }) => ({ slug, reason: 'too_many' }) as const),
  ]
  return { ...told(had.slice(0, runSkillLimits.skills), leftOut), hasSvcSkill: hasSvcSkill || null }
}

function told(
  skills: readonly EffectiveSkill[],
  leftOut: readonly { slug: string; reason: SkillLeftOutReason }[],
): Omit<SkillsOfSpec, 'hasSvcSkill'> {
  return {
    skills: skills.length === 0 ? null : skills.map(offered).toSorted((a, b) => compareTexts(a.slug, b.slug)),
    skillsLeftOut: leftOutOf(leftOut.toSorted((a, b) => compareTexts(a.slug, b.slug))),
  }
}

export const leftOutOf = (leftOut: readonly LeftOutSkill[]): LeftOutSkill[] | null =>
  leftOut.length === 0 ? null : leftOut.slice(0, toldLeftOut)

const compareTexts = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

function offered(skill: EffectiveSkill): OfferedSkill {
  const { slug, bundleHash, fileCount, totalBytes } = skill
  return {
    slug,
    description: (skill.frontMatter.description ?? skill.description ?? skill.name).slice(
      0,
      runSkillLimits.descriptionChars,
    ),
    bundleHash,
    fileCount,
    totalBytes,
    ...(skill.unavailableReason !== null && { isMissed: true as const }),
    writtenBy: writersOf(skill),
  }
}

/** The people whose words it is. */
export const writersOf = ({ writtenByUuid, describedByUuid }: EffectiveSkill): (PersonUuid | null)[] => [
  ...new Set([writtenByUuid, describedByUuid]),
]
