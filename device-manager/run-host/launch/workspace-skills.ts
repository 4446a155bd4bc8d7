import { createHash } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { sayWhyLeftOut, runSkillLimits, type LeftOutSkill, type OfferedSkill } from '../../../shared/runs/skills.ts'
import type { RunEventBody } from '../../../shared/runs/events.ts'
import { skillsLeftOutEvent, type GivenSkill } from '../../harness/parts/skills.ts'
import { isDiskFull } from '../../process/system-trouble.ts'
import { keptIn, WrongBundleError } from '../../skills/kept-bundle.ts'
import type { BroughtSkills } from '../wire/protocol.ts'
import { copySkill } from './skill-copy.ts'
import type { SkillsRead } from './skills.ts'

export interface CopyPlace {
  brought: BroughtSkills
  /** A folder of the run alone, outside of its working tree. */
  folder: string
  /** Copies that were made before there was a run. */
  takeAhead?: (skills: readonly OfferedSkill[]) => readonly GivenSkill[] | null
}

/**
 * Adds the skills of the workspace to those of the agent's folders: each as a copy that is this run's alone. A skill of a folder keeps
 * its name: folders are set by the agent's owner and by admins alone, skills of the workspace by all its people.
 */
export async function addSkills(
  read: SkillsRead,
  { skills, leftOut }: { skills: readonly OfferedSkill[]; leftOut: readonly LeftOutSkill[] },
  place: CopyPlace | null,
): Promise<SkillsRead> {
  if (skills.length === 0 && leftOut.length === 0) return read
  const names = new Set(read.given.map(({ name }) => name))
  const missed = new Map(
    place?.brought.missed.map(({ bundleHash, reason, isDiskFull: isFull }) => [
      bundleHash,
      isFull ? 'disk_full' : reason,
    ]),
  )
  const room = runSkillLimits.skills - read.given.length
  const refused = (skill: OfferedSkill, at: number): string | null => {
    if (names.has(skill.slug)) return 'name_taken'
    if (at >= room) return 'too_many'
    return place === null ? 'not_materialized' : (missed.get(skill.bundleHash) ?? null)
  }
  // A name that is taken takes no room.
  let at = 0
  const judged = skills.map((skill) => ({ skill, reason: refused(skill, names.has(skill.slug) ? at : at++) }))
  if (place !== null) rmSync(place.folder, { recursive: true, force: true })
  const wanted = judged.flatMap(({ skill, reason }) => (reason === null ? [skill] : []))
  const ahead = place?.takeAhead?.(wanted) ?? null
  const results: { skill: OfferedSkill; reason: string | null; given: GivenSkill | null }[] = []
  for (const { skill, reason } of judged) {
    if (reason === null && ahead !== null) {
      results.push({ skill, reason, given: ahead.find(({ name }) => name === skill.slug)! })
      continue
    }
    const copied = reason === null && place !== null ? await copy(skill, place) : { given: null, reason }
    results.push({ skill, ...copied })
  }
  const had = results.filter(({ given }) => given !== null)
  const told = had.map(({ skill }) => ({ name: skill.slug, version: skill.bundleHash.slice(0, versionChars) }))
  const without = results.flatMap(({ skill: { slug }, reason }) => (reason === null ? [] : [{ slug, reason }]))
  const facts = had.map(({ skill: { slug, bundleHash, description } }) => [slug, bundleHash, description])
  const digest =
    facts.length === 0
      ? read.told.digest
      : createHash('sha256')
          .update(JSON.stringify([read.told.digest, facts]))
          .digest('hex')
  return {
    ...read,
    given: [...read.given, ...had.flatMap(({ given }) => given ?? [])],
    told: { ...read.told, workspace: { skills: told, leftOut: [...leftOut, ...without] }, digest },
  }
}

export const versionChars = 12

/** Returns an event for each reason for which skills were left out. */
export function leftOutEvents({ told: { workspace } }: SkillsRead): RunEventBody[] {
  const byReason = Map.groupBy(workspace?.leftOut ?? [], ({ reason }) => reason)
  return [...byReason].map(([reason, skills]) =>
    skillsLeftOutEvent(
      skills.map(({ slug }) => slug),
      sayWhyLeftOut(reason),
    ),
  )
}

export function removed(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true })
  } catch {
    // The rest of a copy may stay, since the run is told only of whole ones.
  }
}

async function copy(
  skill: OfferedSkill,
  { brought: { bundles }, folder }: CopyPlace,
): Promise<{ given: GivenSkill; reason: null } | { given: null; reason: string }> {
  const target = join(folder, skill.slug)
  await setImmediate()
  try {
    return { given: copySkill(skill, { bundles, target }), reason: null }
  } catch (error) {
    removed(target)
    if (!(error instanceof WrongBundleError))
      return { given: null, reason: isDiskFull(error) ? 'disk_full' : 'not_materialized' }
    // The next run has it brought anew.
    removed(keptIn(bundles, skill.bundleHash).root)
    return { given: null, reason: 'bundle_unreadable' }
  }
}
