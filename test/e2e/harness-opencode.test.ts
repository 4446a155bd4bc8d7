import { isLong } from '../kit/forms.ts'
import { opencodeDriver } from './harness/drivers.ts'
import { longCases } from './harness/long-cases.ts'
import { askedCase, shortCases } from './harness/short-cases.ts'
import { skillCases } from './harness/skill-cases.ts'
import { stageFor } from './harness/stage.ts'

// Each start takes 15 s of processor time, so the short form has one; recordings show how a session is gone on with.
const stage = stageFor(opencodeDriver)
if (isLong) {
  shortCases(stage, opencodeDriver)
  longCases(stage, opencodeDriver)
  skillCases(stage)
} else askedCase(stage, opencodeDriver)
