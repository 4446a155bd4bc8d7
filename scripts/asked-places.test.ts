import { expect, test } from 'vitest'
import { askedPlace } from './asked-places.ts'

test('whoever asks which place a run has is found', () => {
  const wrong = [
    "if (run.environmentType === 'cloud') return",
    "const folder = environment === 'cloud' ? null : found",
    'if (device.sandboxId !== null) return exchange()',
    'const holder = device?.sandboxId == null ? one : other',
    'const spec = run.cloud === null ? whole : brokered',
    'if (run.facts.cloud?.device != null) return null',
  ]
  expect(wrong.filter((line) => !askedPlace.test(line))).toEqual([])
})

test('whoever hands it on, or asks the place itself, is not', () => {
  const right = [
    'environmentType: environment,',
    'const { hasFolders } = placeOfEnvironment(environment)',
    "environment: z.enum(['device', 'cloud']),",
    'await findSandbox(tx, sandboxId)',
    'cloud: placeOfEnvironment(run.environmentType).madeForRun(rows.sandbox),',
  ]
  expect(right.filter((line) => askedPlace.test(line))).toEqual([])
})
