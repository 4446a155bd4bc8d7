import { isLong } from '../kit/forms.ts'
import { opencodeDriver } from './harness/drivers.ts'
import { longCases } from './harness/long-cases.ts'
import { askCase, shortCases } from './harness/short-cases.ts'
import { skillCases } from './harness/skill-cases.ts'
import { stageFor } from './harness/stage.ts'

// Each start takes 10 s of processor time. harness-handover.test.ts shows that opencode works.
const stage = stageFor(opencodeDriver)
if (isLong) {
  shortCases(stage, opencodeDriver)
  longCases(stage, opencodeDriver)
  skillCases(stage)
} else askCase(stage, opencodeDriver)
