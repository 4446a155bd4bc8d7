import { opencodeDriver } from './harness/drivers.ts'
import { longCases } from './harness/long-cases.ts'
import { shortCases } from './harness/short-cases.ts'
import { skillCases } from './harness/skill-cases.ts'
import { stageFor } from './harness/stage.ts'

const stage = stageFor(opencodeDriver)
shortCases(stage, opencodeDriver)
longCases(stage, opencodeDriver)
skillCases(stage)
