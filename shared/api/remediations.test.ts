import { expect, test } from 'vitest'
import { errorCodes, plainErrors } from './error-codes.ts'
import { remediations } from './remediations.ts'

test('every remediation is a sentence, and every sentence is of one', () => {
  const entries: readonly object[] = [...Object.values(errorCodes), ...Object.values(plainErrors)]
  const named = new Set(
    entries.flatMap((entry) =>
      'remediation' in entry && typeof entry.remediation === 'string' ? entry.remediation : [],
    ),
  )
  expect(Object.keys(remediations).toSorted()).toEqual([...named].toSorted())
  for (const sentence of Object.values(remediations)) expect(sentence).toMatch(/^[A-Z].*[.]$/)
})
