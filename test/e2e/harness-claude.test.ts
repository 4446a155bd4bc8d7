import { isLong } from '../kit/forms.ts'
import { claudeDriver } from './harness/drivers.ts'
import { longCases } from './harness/long-cases.ts'
import { approvedCase, shortCases } from './harness/short-cases.ts'
import { serverCases } from './harness/server-cases.ts'
import { skillCases } from './harness/skill-cases.ts'
import { stageFor } from './harness/stage.ts'

// Claude does the work of people.test.ts, workflow.test.ts and gate-paths.test.ts, too.
const stage = stageFor(claudeDriver)
serverCases(stage)
if (isLong) {
  shortCases(stage, claudeDriver)
  longCases(stage, claudeDriver)
  skillCases(stage)
} else approvedCase(stage, claudeDriver)
