import fc from 'fast-check'
import { expect, test } from 'vitest'
import { workspaceSlug } from '../../../shared/api/workspaces.ts'
import { haltOf, isHalted, issuePrefixOf, slugCandidates, slugFromName } from './rules.ts'

test('a slug made from a name is valid, or there is none', () => {
  expect(slugFromName('Acme & Söhne')).toBe('acme-sohne')
  expect(slugFromName('42nd Street')).toBe('nd-street')
  expect(slugFromName('測試')).toBeNull()
  expect(slugFromName('a')).toBeNull()
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 120 }), (name) => {
      const slug = slugFromName(name)
      expect(slug === null || workspaceSlug.safeParse(slug).success).toBe(true)
    }),
  )
})

test('numbered slugs are unique and valid, however long the first is', () => {
  for (const slug of ['ab', 'x'.repeat(63), `${'x'.repeat(60)}-yz`]) {
    const candidates = [...slugCandidates(slug)]
    expect(candidates.slice(0, 2)).toEqual([slug, expect.stringMatching(/-2$/)])
    expect(new Set(candidates).size).toBe(candidates.length)
    for (const candidate of candidates) expect(workspaceSlug.safeParse(candidate).success).toBe(true)
  }
})

test('the prefix of task keys is the first three letters of the slug', () => {
  expect(issuePrefixOf('acme-works')).toBe('ACM')
  expect(issuePrefixOf('a1-b2')).toBe('AB')
})

test('nothing starts in a paused or archived workspace', () => {
  const open = { agentsPaused: false, status: 'active', isBillingLocked: false } as const
  expect(haltOf(open)).toBeNull()
  expect(haltOf({ ...open, agentsPaused: true })).toBe('company_paused')
  expect(haltOf({ ...open, status: 'archived' })).toBe('company_paused')
  expect(haltOf({ ...open, agentsPaused: true, isBillingLocked: true })).toBe('billing_locked')
  expect([open, { ...open, isBillingLocked: true }].map(isHalted)).toEqual([false, true])
})
