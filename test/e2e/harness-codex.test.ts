import { isLong } from '../kit/forms.ts'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { waitFor } from '../kit/programs.ts'
import { codexDriver } from './harness/drivers.ts'
import { longCases } from './harness/long-cases.ts'
import { approvedCase, shortCases } from './harness/short-cases.ts'
import { skillCases } from './harness/skill-cases.ts'
import { stageFor } from './harness/stage.ts'

const stage = stageFor(codexDriver)
test('its first start was made apart, behind a wall where there is one, so that its runs begin with databases', async () => {
  const all = join(stage().device.stateDir, 'first-starts')
  const kept = await waitFor(
    () => (existsSync(all) ? readdirSync(all).find((name) => /^codex-[\d.]+$/.test(name)) : null),
    'a first start of codex is kept',
  )
  const names = readdirSync(join(all, kept))
  expect(names).toContain('state_5.sqlite')
  expect(names.filter((name) => !/\.sqlite(-wal)?$/.test(name))).toEqual([])
})

// Recordings stand for the rest of the cases in the short form; harness-handover.test.ts shows what follows a provider that fails.
if (isLong) {
  shortCases(stage, codexDriver)
  longCases(stage, codexDriver)
  skillCases(stage)
} else approvedCase(stage, codexDriver)
