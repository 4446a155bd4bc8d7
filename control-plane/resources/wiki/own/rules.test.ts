import { describe, expect, it } from 'vitest'
import { changesWhatFilesSay, publishFlaws, restoreFlaws, tokenCountOf, type PublishFacts } from './rules.ts'

const facts: PublishFacts = {
  bodyFlaws: [],
  sizeBytes: 60,
  current: { id: 'wrev_1', sizeBytes: 100 },
  baseRevisionId: null,
  allowShrink: false,
  isArchived: false,
}
const failed = (changes: Partial<PublishFacts>) => publishFlaws({ ...facts, ...changes }).map(({ check }) => check)

describe('what is published', () => {
  it('takes a body that keeps 60 % of the bytes, and one that is shorter where that is meant', () => {
    expect(failed({})).toEqual([])
    expect(failed({ sizeBytes: 59 })).toEqual(['wiki_body_shrunk'])
    expect(failed({ sizeBytes: 59, allowShrink: true })).toEqual([])
    expect(failed({ sizeBytes: 0, current: null })).toEqual([])
    expect(failed({ sizeBytes: 0, current: { id: 'wrev_1', sizeBytes: 0 } })).toEqual([])
  })

  it('takes a change of the current revision, not of another one', () => {
    expect(failed({ baseRevisionId: 'wrev_1' })).toEqual([])
    expect(failed({ baseRevisionId: 'wrev_0' })).toEqual(['wiki_stale_base_revision'])
    expect(failed({ baseRevisionId: 'wrev_0', current: null })).toEqual(['wiki_stale_base_revision'])
  })

  it('names all that fails, in the order of the codes', () => {
    const bodyFlaws = (['wiki_publish_failed', 'wiki_citation_style', 'wiki_body_truncated'] as const).map((check) => ({
      check,
      message: 'Why.',
    }))
    const all = { bodyFlaws, sizeBytes: 1, baseRevisionId: 'wrev_0', isArchived: true }
    expect(failed(all)).toEqual([
      'wiki_stale_base_revision',
      'wiki_body_truncated',
      'wiki_body_shrunk',
      'wiki_citation_style',
      'wiki_publish_failed',
      'wiki_publish_failed',
    ])
    const restored = restoreFlaws(publishFlaws({ ...facts, ...all }))
    expect([...new Set(restored.map(({ check }) => check))]).toEqual(['wiki_publish_failed'])
  })
})

it('leaves slug and archive state of an ingested page to its files', () => {
  const page = { sourceRef: 'docs/a.md', slug: 'a', archivedAt: null }
  const none = { slug: undefined, archived: undefined }
  expect(changesWhatFilesSay(page, none)).toBe(false)
  expect(changesWhatFilesSay(page, { slug: 'a', archived: false })).toBe(false)
  expect(changesWhatFilesSay(page, { ...none, slug: 'b' })).toBe(true)
  expect(changesWhatFilesSay(page, { ...none, archived: true })).toBe(true)
  expect(changesWhatFilesSay({ ...page, archivedAt: 1 }, { ...none, archived: true })).toBe(false)
  expect(changesWhatFilesSay({ ...page, sourceRef: null }, { slug: 'b', archived: true })).toBe(false)
})

it('counts a token for four bytes begun', () => {
  expect([0, 1, 4, 5].map(tokenCountOf)).toEqual([0, 1, 1, 2])
})
