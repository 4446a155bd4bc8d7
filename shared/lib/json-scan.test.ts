import { serialize } from 'node:v8'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { JsonScan, keptChars, mostDepth, type JsonRule, type JsonVerdict } from './json-scan.ts'
import { parseJsonText } from './lines.ts'
import { cpuMsOf } from '../../test/kit/cpu-time.ts'

/** Takes any JSON, and finds the text `sought` as the value of a member `key`, however deep. */
const rule: JsonRule = {
  root: 1,
  opens: () => 1,
  member: (_place, key) => (key === 'key' ? 2 : 1),
  watches: (place) => place === 2,
  finds: (_place, text) => text.startsWith('sought'),
}

function scanned(bytes: Uint8Array, cuts: readonly number[] = []): JsonVerdict {
  const scan = new JsonScan(rule)
  let from = 0
  for (const to of [...cuts.toSorted((a, b) => a - b), bytes.length]) {
    scan.push(bytes.subarray(from, to))
    from = Math.max(from, to)
  }
  return scan.end()
}
const read = (text: string, cuts?: readonly number[]) => scanned(new TextEncoder().encode(text), cuts)
const isJson = (text: string) => parseJsonText(text) !== undefined

const blanks = fc.stringMatching(/^[ \t\r\n]{0,2}$/)
/** Texts of JSON that are written in all ways. */
const written = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.constantFrom('true', 'false', 'null', '0', '-0', '1e5', '-1.5E+10', '0.1e-1', '12'),
    fc.json({ maxDepth: 0 }),
    fc
      .tuple(fc.array(fc.tuple(text(), blanks, tie('value'))), blanks)
      .map(([all, blank]) => `{${blank}${all.map(([key, gap, value]) => `${key}${gap}:${value}`).join(',')}}`),
    fc.tuple(fc.array(tie('value')), blanks).map(([all, blank]) => `[${all.join(`${blank},`)}${blank}]`),
    text(),
  ),
})).value

function text(): fc.Arbitrary<string> {
  const escape = (char: string, how: number) => {
    // A character of two halves is written as it is.
    const hex = char.length === 1 ? char.charCodeAt(0).toString(16).padStart(4, '0') : undefined
    if (how === 0 && hex !== undefined) return `\\u${hex}`
    if (how === 1 && hex !== undefined) return `\\u${hex.toUpperCase()}`
    return JSON.stringify(char).slice(1, -1)
  }
  const chars = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('key', 'sought', 'sought after', 'ключ', '😀'))
  return fc.tuple(chars, fc.array(fc.nat(4), { minLength: 1 })).map(
    ([plain, how]) =>
      `"${Array.from(plain)
        .map((char, at) => escape(char, how[at % how.length]!))
        .join('')}"`,
  )
}

describe('a scan', () => {
  test('takes the JSON that JSON.parse takes, wherever it is cut', () => {
    fc.assert(
      fc.property(written, fc.array(fc.nat(200)), (json, cuts) => {
        expect(isJson(json)).toBe(true)
        const whole = read(json)
        expect(whole).not.toBe('broken')
        expect(read(json, cuts)).toBe(whole)
        expect(
          read(
            json,
            Array.from({ length: 2 * json.length }, (_, at) => at),
          ),
        ).toBe(whole)
      }),
    )
  })

  test('takes a text that was edited if JSON.parse takes it', () => {
    const bits = fc.constantFrom(
      ...Array.from('{}[],:"\\/ \n\t\r\u0000\u0001\u00a0\ufeff0123456789.-+eEtrufalsnbN\'#*xключ😀'),
    )
    const edit = fc.tuple(fc.nat(), fc.nat(3), bits)
    fc.assert(
      fc.property(
        written,
        fc.array(edit, { minLength: 1, maxLength: 3 }),
        fc.array(fc.nat(100)),
        (json, edits, cuts) => {
          let edited = json
          for (const [seed, gone, bit] of edits) {
            const at = seed % (edited.length + 1)
            edited = edited.slice(0, at) + bit + edited.slice(at + gone)
          }
          // A half of a pair has no bytes of its own.
          edited = edited.toWellFormed()
          const verdict = read(edited, cuts)
          if (verdict !== 'found') expect([edited, verdict]).toEqual([edited, isJson(edited) ? 'fine' : 'broken'])
        },
      ),
      { numRuns: 1_000 },
    )
  })

  test('takes bytes that are UTF-8 alone, as a strict decoder does', () => {
    const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
    const byte = fc.oneof(
      fc.nat(255),
      fc.constantFrom(0x80, 0xbf, 0xc0, 0xc2, 0xe0, 0xa0, 0xed, 0x9f, 0xf0, 0x90, 0xf4),
    )
    fc.assert(
      fc.property(fc.array(byte, { maxLength: 6 }), (bytes) => {
        const body = Uint8Array.from([0x22, ...bytes, 0x22])
        let isGood = false
        try {
          isGood = isJson(decoder.decode(body))
        } catch {
          // These are no characters.
        }
        expect(scanned(body)).toBe(isGood ? 'fine' : 'broken')
      }),
      { numRuns: 1_000 },
    )
  })

  test.each([
    ['as it is', '{"key":"sought"}'],
    ['after another one of the same key', '{"key":"x","key":"sought"}'],
    ['before another one of the same key', '{"key":"sought","key":"x"}'],
    ['in escapes', String.raw`{"\u006bey":"\u0073ough\u0074"}`],
    ['deep within', '[[{"a":[{"b":{"key":"sought after"}}]}]]'],
    ['before the text breaks', '{"key":"sought'],
  ])('finds what is said %s', (_, json) => {
    expect(read(json)).toBe('found')
    for (let cut = 0; cut <= json.length; cut++) expect(read(json, [cut])).toBe('found')
  })

  test.each([
    '',
    ' ',
    '\ufeff{}',
    '{}{}',
    '{} x',
    '{}\u0000',
    '{"a":1,}',
    '[1,]',
    '[,1]',
    '{a:1}',
    "{'a':1}",
    '{"a" 1}',
    '{"a":}',
    '{"a"}',
    '[}',
    '{]',
    '[NaN]',
    '[Infinity]',
    '[+1]',
    '[01]',
    '[1.]',
    '[.5]',
    '[-]',
    '[1e]',
    '[0x10]',
    '[truE]',
    '[nul]',
    '// a\n{}',
    '{/**/}',
    '["\t"]',
    String.raw`["\x41"]`,
    String.raw`["\u00g0"]`,
    '["a',
    '{"a":1',
    '[1',
  ])('breaks at %j', (json) => {
    expect([read(json), isJson(json)]).toEqual(['broken', false])
  })

  test('finds a text as soon as it is one, and no other verdict comes after', () => {
    const scan = new JsonScan(rule)
    const said = (part: string) => scan.push(Buffer.from(part))
    expect([said('{"key":"soug'), said('h'), said('t'), said('"}')]).toEqual(['fine', 'fine', 'found', 'found'])
    expect(scan.end()).toBe('found')
    const broken = new JsonScan(rule)
    expect([broken.push(Buffer.from('[1}')), broken.push(Buffer.from('{"key":"sought"}')), broken.end()]).toEqual([
      'broken',
      'broken',
      'broken',
    ])
  })

  test('follows values to a depth that programs keep to, and no further', () => {
    const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
    expect([read(nested(mostDepth)), read(nested(mostDepth + 1))]).toEqual(['fine', 'broken'])
  })

  test('judges the beginning of a text that is long', () => {
    const seen: number[] = []
    const scan = new JsonScan({ ...rule, finds: (_place, said) => seen.push(said.length) === 0 })
    const chunk = Buffer.from('x'.repeat(100))
    scan.push(Buffer.from('{"key":"'))
    for (let i = 0; i < 1_000; i++) scan.push(chunk)
    expect(scan.push(Buffer.from('"}'))).toBe('fine')
    expect(seen).toEqual([100, 200, keptChars, keptChars])
  })
})

describe('whatever comes', () => {
  const size = 2 * 1024 * 1024
  const chunkSize = 64 * 1024

  test.each([
    ['a long text', '["', 'x'],
    ['a long text that is judged', '{"key":"', 'x'],
    ['escapes', '{"key":"', String.raw`\u0041`],
    ['letters of several bytes', '["', 'ж'],
    ['small numbers', '[', '1,'],
    ['one long number', '[', '1'],
    ['blanks', '', ' '],
    ['many members', '{', '"key":"x",'],
    ['a long key', '{"', 'x'],
    ['depth', '[', '['.repeat(mostDepth - 1) + ']'.repeat(mostDepth - 1) + ','],
  ])('a scan of %s looks at each byte once, and keeps little', (_, begin, unit) => {
    const body = Buffer.from(begin + unit.repeat(Math.ceil(size / Buffer.byteLength(unit))))
    const scan = new JsonScan(rule)
    const spent = cpuMsOf(() => {
      for (let at = 0; at < body.length; at += chunkSize) scan.push(body.subarray(at, at + chunkSize))
    })
    // 1 µs a byte, which is 50 times what it needs. Whoever looked at bytes more than a few times would need hours.
    expect(spent).toBeLessThan(size / 1_000)
    expect(scan.push(Buffer.alloc(0))).toBe('fine')
    const kept = Object.values(scan).filter((value) => typeof value !== 'object' || value instanceof Uint8Array)
    expect(serialize(kept).length).toBeLessThan(4 * 1024)
  })
})
