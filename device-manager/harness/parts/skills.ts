import type { RunEventBody } from '../../../shared/runs/events.ts'
import { errorEvent } from './error-event.ts'

/** A skill that a run is given. */
export interface GivenSkill {
  name: string
  description: string
  /** What its SKILL.md says below the front matter. */
  body: string
  /** Its folder, without links. */
  folder: string
  /** It has more files than its SKILL.md. */
  hasFiles: boolean
  /** It is svc's own, which nobody chose. */
  isBuiltin?: true
}

/** A skill, or a folder of skills, that a run does without, and why, in words that say what to do. */
export interface SkillLeftOut {
  path: string
  why: string
}

/** The same of skills of the workspace, by their names. */
export function skillsLeftOutEvent(names: readonly string[], why: string): RunEventBody {
  const more = names.length > mostNamed ? ` and ${names.length - mostNamed} more` : ''
  const what = names.length === 1 ? 'skill' : 'skills'
  return errorEvent(
    'skill_left_out',
    `The run goes without the ${what} ${names.slice(0, mostNamed).join(', ')}${more} of the workspace: ${why}.`,
  )
}
const mostNamed = 10

export const skillLeftOutEvent = ({ path, why }: SkillLeftOut): RunEventBody =>
  errorEvent('skill_left_out', `The run goes without skills of ${path}: ${why}.`)
