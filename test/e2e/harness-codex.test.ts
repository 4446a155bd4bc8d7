import { codexDriver } from './harness/drivers.ts'
import { longCases } from './harness/long-cases.ts'
import { shortCases } from './harness/short-cases.ts'
import { skillCases } from './harness/skill-cases.ts'
import { stageFor } from './harness/stage.ts'

const stage = stageFor(codexDriver)
shortCases(stage, codexDriver)
longCases(stage, codexDriver)
skillCases(stage)
