import { allHarnessCases } from '../kit/real-harness.ts'
import { codexDriver } from './harness/drivers.ts'
import { limitCases, longCases } from './harness/long-cases.ts'
import { shortCases } from './harness/short-cases.ts'
import { skillCases } from './harness/skill-cases.ts'
import { stageFor } from './harness/stage.ts'

// The quickest of the real ones, so it stands for the others in a usual run of the tests.
const stage = stageFor(codexDriver)
shortCases(stage, codexDriver)
if (allHarnessCases) {
  longCases(stage, codexDriver)
  skillCases(stage)
} else limitCases(stage, codexDriver)
