import { allHarnessCases } from '../kit/real-harness.ts'
import { claudeDriver } from './harness/drivers.ts'
import { longCases } from './harness/long-cases.ts'
import { shortCases } from './harness/short-cases.ts'
import { skillCases } from './harness/skill-cases.ts'
import { stageFor } from './harness/stage.ts'

const stage = stageFor(claudeDriver)
shortCases(stage, claudeDriver)
if (allHarnessCases) {
  longCases(stage, claudeDriver)
  skillCases(stage)
}
