import { isLong } from '../kit/forms.ts'
import { acpDriver } from './harness/drivers.ts'
import { longCases } from './harness/long-cases.ts'
import { gateCases, shortCases } from './harness/short-cases.ts'
import { stageFor } from './harness/stage.ts'

// It starts slowly; that it works stands in harness-handover.test.ts.
const stage = stageFor(acpDriver)
if (isLong) {
  shortCases(stage, acpDriver)
  longCases(stage, acpDriver)
} else gateCases(stage, acpDriver)
