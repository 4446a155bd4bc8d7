import { isLong } from '../kit/forms.ts'
import { acpDriver } from './harness/drivers.ts'
import { longCases } from './harness/long-cases.ts'
import { askedCase, shortCases, strictCase } from './harness/short-cases.ts'
import { stageFor } from './harness/stage.ts'

// Each start takes 10 s of processor time, so the short form has one; harness-cursor.test.ts shows a call that is denied by ACP.
const stage = stageFor(acpDriver)
if (isLong) {
  shortCases(stage, acpDriver)
  longCases(stage, acpDriver)
} else {
  askedCase(stage, acpDriver)
  strictCase(stage)
}
