import { expect, test } from 'vitest'
import { misformedRecord } from './adr-form.ts'

const right = `# 0009: Wakes are rows

Status: accepted. Date: 2026-11-21.

## Context

Why.

## Decision

What.

## Consequences

So.
`

test('a decision record with its status, its date and its three sections is taken', () => {
  expect(misformedRecord(right)).toBe(-1)
  expect(misformedRecord(right.replace('accepted', 'superseded by 0020'))).toBe(-1)
  expect(misformedRecord(right.replace('## Consequences', '## Alternatives\n\nNo.\n\n## Consequences'))).toBe(-1)
})

test('any other is not', () => {
  const wrong = [
    right.replace('# 0009: ', '# 9. '),
    right.replace(/Status.*\n\n/, ''),
    right.replace('2026-11-21', 'last week'),
    right.replace('accepted', 'perhaps'),
    right.replace('## Context\n\n', '**Context.** '),
    right.replace(/## Consequences[^]*/, ''),
  ]
  expect(wrong.map(misformedRecord)).toEqual(wrong.map(() => 0))
})
