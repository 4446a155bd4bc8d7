import type { RunEventBody } from '../../../shared/runs/events.ts'
import { skillLeftOutEvent } from '../parts/skills.ts'

/** Says that it took no folders of skills. */
export const noSkills = skillLeftOutEvent({
  path: 'all folders',
  why: 'this codex takes none by its protocol; update codex',
})

export const tooLate: RunEventBody = {
  kind: 'error',
  data: {
    class: 'input_too_late',
    message: 'The text came after codex had ended its turn and was not delivered.',
    willRetry: false,
  },
}
