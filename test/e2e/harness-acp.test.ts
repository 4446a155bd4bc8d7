import { acpDriver } from './harness/drivers.ts'
import { longCases } from './harness/long-cases.ts'
import { shortCases } from './harness/short-cases.ts'
import { stageFor } from './harness/stage.ts'

const stage = stageFor(acpDriver)
shortCases(stage, acpDriver)
longCases(stage, acpDriver)
