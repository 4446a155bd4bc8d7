import type { PersonUuid } from '../lib/ids.ts'
import { idIn } from '../lib/id-schema.ts'
import { z } from 'zod'

// Folders of skills in the open Agent Skills format (https://agentskills.io): `<folder>/<name>/SKILL.md`. The device reads them
// when a run begins. A relative path is below the agent's folder, and `~/` is the home of the person whose device it is.

export const runSkillLimits = {
  folders: 16,
  pathBytes: 1_024,
  /** The skills of all folders of a run together. */
  skills: 200,
  fileBytes: 64 * 1024,
  nameChars: 64,
  descriptionChars: 1_024,
} as const

/** Tells whether a path that is not absolute stays in the folder it is seen from, as far as its words tell. */
function staysBelow(path: string): boolean {
  if (path.startsWith('/')) return true
  let depth = 0
  for (const part of path.split('/')) {
    if (part === '..') depth--
    else if (part !== '' && part !== '.') depth++
    if (depth < 0) return false
  }
  return true
}

const isShort = (path: string): boolean => new TextEncoder().encode(path).length <= runSkillLimits.pathBytes

const wording = 'a path without control characters: absolute, below `~/`, or below the folder of the agent'
export const skillFolder = z
  .string()
  .min(1)
  .max(runSkillLimits.pathBytes)
  // Homes of other people are not looked up.
  // oxlint-disable-next-line no-control-regex
  .regex(/^(?:~(?:\/[^\u0000-\u001f\u007f]*)?|[^~\u0000-\u001f\u007f][^\u0000-\u001f\u007f]*)$/, wording)
  .refine(isShort, `at most ${runSkillLimits.pathBytes} bytes`)
  .refine(staysBelow, wording)
export const skillFolders = z.array(skillFolder).min(1).max(runSkillLimits.folders)

/** A skill of the workspace that a run is to have. Its device asks the control plane for the files, by the hash of their list. */
export const offeredSkill = z.object({
  slug: z.string().regex(/^[a-z0-9_-]{1,64}$/),
  /** The description by which a model knows when to use the skill. */
  description: z.string().max(runSkillLimits.descriptionChars),
  bundleHash: z.string().regex(/^[0-9a-f]{64}$/),
  fileCount: z.number().int().nonnegative(),
  totalBytes: z.number().int().nonnegative(),
  /** A run could not have it lately, so the device says when this one has it. */
  isMissed: z.literal(true).optional(),
  /**
   * The writers as they are stored, not as they are offered: UUIDs of who last wrote the skill and its description; null: nobody is known.
   * Empty: svc did.
   */
  writtenBy: z
    .array(idIn<PersonUuid>(z.string().max(64)).nullable())
    .max(2)
    .optional(),
})
export type OfferedSkill = z.infer<typeof offeredSkill>

/** The reasons for which a device may say that it could not bring a skill to a run. */
export const unavailableReasons = ['not_materialized', 'bundle_unreadable'] as const
export type UnavailableReason = (typeof unavailableReasons)[number]

/** The reasons for which a run does without a skill of the workspace. Newer servers and devices may know more. */
const whyLeftOut = {
  private_agent: 'the agent is private, and neither its owner nor an admin wrote the skill last',
  device_refuses_writer: 'the device does not take the work of whoever wrote it last (docs/trust.md)',
  harness: 'the agent program of the run takes none from svc',
  too_many: `a run takes ${runSkillLimits.skills} skills`,
  name_taken: 'the run has another skill of this name',
  disk_full: 'the disk of the device is full',
  not_materialized: 'its files could not be brought to the device',
  bundle_unreadable: 'its files are not those that the server names',
} as const
export type SkillLeftOutReason = keyof typeof whyLeftOut

/** Says the reason in words for people. */
export const sayWhyLeftOut = (reason: string): string =>
  Object.hasOwn(whyLeftOut, reason) ? whyLeftOut[reason as SkillLeftOutReason] : reason

/** A skill of the workspace that a run does without. `reason`: one of those above, or one that a newer peer knows. */
export const leftOutSkill = z.object({ slug: z.string().max(64), reason: z.string().max(64) })
export type LeftOutSkill = z.infer<typeof leftOutSkill>
/** The most skills that are named of those left out. */
export const toldLeftOut = 20

/** The skills that a run was given, by the folders they come from. */
export const runSkills = z.object({
  folders: z.array(
    z.object({
      /** The folder as the agent's setting names it. */
      folder: z.string(),
      /** `version`: the beginning of a hash over SKILL.md and the list of the skill's files. */
      skills: z.array(z.object({ name: z.string(), version: z.string() })),
    }),
  ),
  /** Skills of the workspace. `version`: the beginning of the hash of its files. Left out where there are none. */
  workspace: z
    .object({
      skills: z.array(z.object({ name: z.string(), version: z.string() })),
      leftOut: z.array(leftOutSkill),
    })
    .optional(),
  /** A digest of all skills with their places: a session goes on only with the skills that it began with. */
  digest: z.string(),
})
export type RunSkills = z.infer<typeof runSkills>
