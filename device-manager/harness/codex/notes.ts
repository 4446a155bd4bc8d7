import { inputTooLate } from '../parts/error-event.ts'
import { skillLeftOutEvent } from '../parts/skills.ts'

/** Says that it took no folders of skills. */
export const noSkills = skillLeftOutEvent({
  path: 'all folders',
  why: 'this codex takes none by its protocol; update codex',
})

export const tooLate = inputTooLate('codex')
