import fc from 'fast-check'
import { expect, test } from 'vitest'
import { projectUuidOf, toProjectRef } from './project-ref.ts'

test('a project is named by its UUID in either form', () => {
  fc.assert(
    fc.property(fc.uuid(), (uuid) => {
      const reference = toProjectRef(uuid)
      expect(reference).toMatch(/^prj_[0-9A-Za-z]{22}$/)
      expect(projectUuidOf(reference)).toBe(uuid)
      expect(projectUuidOf(uuid.toUpperCase())).toBe(uuid)
    }),
  )
})

test('anything else names none', () => {
  for (const text of [
    '',
    'prj_',
    'prj_1',
    `prj_${'z'.repeat(22)}`,
    `prj_${'0'.repeat(23)}`,
    'tsk_9wE3mU7xKfA1gN5z',
    'me',
  ])
    expect(projectUuidOf(text)).toBeNull()
})
