import { describe, expect, it } from 'vitest'
import { linkTargetOf } from './own/link-target.ts'
import { readPage } from './read-page.ts'

const links = (body: string) => readPage({ kind: 'markdown', body }).links
const urls = (body: string) => links(body).map(({ url }) => url)
const failed = (body: string, kind: 'markdown' | 'csv' = 'markdown') =>
  readPage({ kind, body }).flaws.map(({ check }) => check)

describe('the links of a page', () => {
  it('come in their order, each URL once, with the words that are linked', () => {
    const body = [
      'See [the *plan*](plan "Title"), [[Über uns]], [[plan|our plan]] and [docs](https://example.com/a?b=1#c).',
      '',
      '> A [task](pinework://task/tsk_1), <https://example.com/auto>, https://example.com/bare.',
      '',
      '| a | [in a table](/wiki/plan) |',
      '|-|-|',
      '',
      '- [by name][ref] and [again](plan)',
      '',
      '[ref]: https://example.com/ref',
    ].join('\n')
    expect(links(body).map(({ url, text }) => [url, text])).toEqual([
      ['plan', 'the *plan*'],
      ['/wiki/über-uns', 'Über uns'],
      ['/wiki/plan', 'our plan'],
      ['https://example.com/a?b=1#c', 'docs'],
      ['pinework://task/tsk_1', 'task'],
      ['https://example.com/auto', 'https://example.com/auto'],
      ['https://example.com/bare', 'https://example.com/bare'],
      ['https://example.com/ref', 'by name'],
    ])
  })

  it.each([
    ['a fence', '```\n[a](b) [[c]] https://example.com\n```'],
    ['an indented block', '    [a](b)'],
    ['code in a line', 'Write `[a](b)` or `[[c]]`.'],
    ['escapes', '\\[a](b) \\[\\[c]]'],
    ['images', '![a](b)'],
    ['places in the page', '[up](#top)'],
    ['scripts', '[a](javascript:alert(1)) [b](data:text/html,x)'],
    ['HTML', '<a href="b">a</a>'],
    ['brackets without a name', '[[ ]] [[!]] []()'],
  ])('are none in %s', (_, body) => expect(urls(body)).toEqual([]))

  it('are those around an image, too', () => expect(urls('[![logo](logo.png)](plan)')).toEqual(['plan']))
  it('are bounded', () => {
    expect(links(Array.from({ length: 1_001 }, (_, n) => `[a](p${n})`).join(' '))).toHaveLength(1_000)
    expect(urls(`[a](${'x'.repeat(2_049)}) [b](c)`)).toEqual(['c'])
    expect(links(`[${'😀'.repeat(200)}](c)`)[0]!.text).toBe('😀'.repeat(100))
  })

  it('are none in CSV', () => expect(readPage({ kind: 'csv', body: '[a](b)' }).links).toEqual([]))
})

it.each([
  ['plan', { slug: 'plan' }],
  ['Plan#goals', { slug: 'plan' }],
  ['/wiki/plan/', { slug: 'plan' }],
  ['/wiki/plan?x=1', { slug: 'plan' }],
  ['%C3%BCber-uns', { slug: 'über-uns' }],
  ['/wiki/wik_0123456789abcDEF', { pageId: 'wik_0123456789abcDEF' }],
  ['pinework://wiki_page/wik_0123456789abcDEF', { pageId: 'wik_0123456789abcDEF' }],
  ['pinework://wiki_page/plan', { slug: 'plan' }],
  ['wik_0123456789abcdef', null],
  ['pinework://task/tsk_0123456789abcdef', null],
  ['https://example.com/wiki/plan', null],
  ['mailto:a@example.com', null],
  ['plan.md', null],
  ['docs/plan', null],
  ['/wiki/a/b', null],
  ['%E0%A4%A', null],
  ['', null],
])('%s leads to %j', (url, target) => expect(linkTargetOf(url)).toEqual(target))

describe('the checks of a body', () => {
  it.each([
    'Plain words, [a link](https://example.com) and a [1st](b) one.',
    'A list of [1](https://example.com).',
    '`[1]` and\n\n```\n[2]\n## Sources\n```',
    'Years [2024] and boxes:\n\n- [x] done\n- [ ] open',
    '# Sources of error\n\n## Reference\n\nReferences are good.',
    'A [name][1] for a link.\n\n[1]: https://example.com',
    'Tokens were truncated; 12 tokens, truncated.',
  ])('pass %j', (body) => expect(failed(body)).toEqual([]))

  it.each([
    'As shown [1].',
    'As shown[12], too.',
    'As shown [1, 2] and [3-5].',
    'As shown [1–3].',
    'A footnote[^1].',
    'Two in a row [1][2].\n\n[1]: https://a.example\n[2]: https://b.example',
    'With a definition [1].\n\n[1]: https://example.com',
    'A [[1]](https://example.com) in brackets.',
    'Words\n\n## Sources\n\n- https://example.com',
    'Words\n\nREFERENCES:\n---\n',
    '# 7. **Sources**',
    '> ### References #',
  ])('find the citations of %j', (body) => expect(failed(body)).toEqual(['wiki_citation_style']))

  it.each(['…1234 tokens truncated…', '[...12 Tokens Truncated]', '```\nout\n…7 tokens truncated…\n```'])(
    'find that %j was cut',
    (body) => expect(failed(body)).toEqual(['wiki_body_truncated']),
  )

  it('say all that they find', () => {
    const { flaws } = readPage({ kind: 'markdown', body: 'So [3].\n\n# Sources\n\n…1 tokens truncated…' })
    expect(flaws.map(({ check }) => check)).toEqual(['wiki_body_truncated', 'wiki_citation_style'])
    expect(flaws[1]!.message).toContain('the numbered citation [3] and the section "Sources"')
  })

  it('parse CSV, whose brackets are no citations', () => {
    expect(failed('a,b\n[1],"# Sources"', 'csv')).toEqual([])
    expect(failed('a,b\n"c', 'csv')).toEqual(['wiki_publish_failed'])
    expect(readPage({ kind: 'csv', body: 'a\n"b' }).flaws[0]!.message).toContain('line 2: a quote is not closed')
  })
})
