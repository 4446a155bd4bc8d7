import { z } from 'zod'

/**
 * Folders of skills in the open Agent Skills format (https://agentskills.io): `<folder>/<name>/SKILL.md`. The device reads them
 * when a run begins. A relative path is below the agent's folder, and `~/` is the home of the person whose device it is.
 */

export const skillLimits = {
  folders: 16,
  pathBytes: 1_024,
  /** Of all folders of a run together. */
  skills: 200,
  fileBytes: 64 * 1024,
  nameChars: 64,
  descriptionChars: 1_024,
} as const

/** Whether a path that is not absolute stays in the folder it is seen from, as far as its words tell. */
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

const isShort = (path: string): boolean => new TextEncoder().encode(path).length <= skillLimits.pathBytes

const wording = 'a path without control characters: absolute, below `~/`, or below the folder of the agent'
export const skillFolder = z
  .string()
  .min(1)
  .max(skillLimits.pathBytes)
  // Homes of other people are not looked up.
  // oxlint-disable-next-line no-control-regex
  .regex(/^(?:~(?:\/[^\u0000-\u001f\u007f]*)?|[^~\u0000-\u001f\u007f][^\u0000-\u001f\u007f]*)$/, wording)
  .refine(isShort, `at most ${skillLimits.pathBytes} bytes`)
  .refine(staysBelow, wording)
export const skillFolders = z.array(skillFolder).min(1).max(skillLimits.folders)

/** The skills that a run was given, by the folders they come from. */
export const skillsGiven = z.object({
  folders: z.array(
    z.object({
      /** As the agent's setting names it. */
      folder: z.string(),
      /** `version`: the beginning of a hash over SKILL.md and the list of the skill's files. */
      skills: z.array(z.object({ name: z.string(), version: z.string() })),
    }),
  ),
  /** Of all skills with their places: a session goes on only with the skills that it began with. */
  digest: z.string(),
})
export type SkillsGiven = z.infer<typeof skillsGiven>
