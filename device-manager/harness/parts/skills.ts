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
}

/** A skill, or a folder of skills, that a run does without, and why, in words that say what to do. */
export interface SkillLeftOut {
  path: string
  why: string
}

export const skillLeftOutEvent = ({ path, why }: SkillLeftOut): RunEventBody =>
  errorEvent('skill_left_out', `The run goes without skills of ${path}: ${why}.`)
