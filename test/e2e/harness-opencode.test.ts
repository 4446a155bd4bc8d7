import { allHarnessCases } from '../kit/real-harness.ts'
import { opencodeDriver } from './harness/drivers.ts'
import { longCases } from './harness/long-cases.ts'
import { askCase, shortCases } from './harness/short-cases.ts'
import { skillCases } from './harness/skill-cases.ts'
import { stageFor } from './harness/stage.ts'

// Each of its starts takes many seconds of processor time; that it works stands in harness-handover.test.ts.
const stage = stageFor(opencodeDriver)
if (allHarnessCases) {
  shortCases(stage, opencodeDriver)
  longCases(stage, opencodeDriver)
  skillCases(stage)
} else askCase(stage, opencodeDriver)
