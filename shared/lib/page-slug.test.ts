import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { asPageSlug, maxSlugLength, pageSlugOf } from './page-slug.ts'
import { cpuMsOf } from '../../test/kit/cpu-time.ts'

/** Characters as numbers: fast-check takes a second to make ready for texts of them. */
const characters = fc.array(fc.integer({ min: 0, max: 0x10_ff_ff }), { maxLength: 600 })

describe('the slug of a title', () => {
  it.each([
    ['Hello, World!', 'hello-world'],
    ['  How   we\tdeploy ', 'how-we-deploy'],
    ['snake_case and kebab-case', 'snake_case-and-kebab-case'],
    ['Über uns: Straße 7', 'über-uns-straße-7'],
    ['部署 指南', '部署-指南'],
    ['नमस्ते दुनिया', 'नमस्ते-दुनिया'],
    ['Cafe\u0301', 'café'],
    ['a/b?c#d', 'abcd'],
    ['!!!', ''],
  ])('%s is %s', (title, slug) => expect(pageSlugOf(title)).toBe(slug))

  it('is a slug, is its own slug, and is bounded, whatever the title', () => {
    fc.assert(
      fc.property(characters, (drawn) => {
        const title = String.fromCodePoint(...drawn)
        const slug = pageSlugOf(title)
        expect(slug.length).toBeLessThanOrEqual(maxSlugLength)
        expect(pageSlugOf(slug)).toBe(slug)
        if (slug !== '') expect(asPageSlug(slug)).toBe(slug)
      }),
    )
  })
})

it('takes a slug in any case and Unicode form, and nothing that is none', () => {
  expect(asPageSlug('How-We-Deploy')).toBe('how-we-deploy')
  expect(asPageSlug('cafe\u0301')).toBe('café')
  for (const text of ['', 'two words', 'a/b', 'a.md', '#top', 'x'.repeat(201), 'wik_0123456789abcdef'])
    expect(asPageSlug(text)).toBeNull()
})

it('refuses a long text of marks at once, and takes every character that is taken apart', () => {
  const long = 'a' + '\u0315\u0300'.repeat(500_000)
  expect(cpuMsOf(() => expect(asPageSlug(long)).toBeNull())).toBeLessThan(100)
  expect(asPageSlug('\u1f82'.repeat(maxSlugLength).normalize('NFD'))).toBe('\u1f82'.repeat(maxSlugLength))
})
