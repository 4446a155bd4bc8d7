import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { buildAutomaton } from './redact-automaton.ts'
import { Scan } from './redact-scan.ts'
import { Redactor, type SecretValue } from './redact.ts'

const encoder = new TextEncoder()
const secret = (value: string, name = 'KEY'): SecretValue => ({ name, value })

function stream(secrets: readonly SecretValue[], chunks: readonly (string | Uint8Array)[]): Buffer {
  const redactor = new Redactor(secrets)
  const out = chunks.map((chunk) => redactor.push(typeof chunk === 'string' ? encoder.encode(chunk) : chunk))
  return Buffer.concat([...out.map((part) => Buffer.from(part)), redactor.flush()])
}
const text = (secrets: readonly SecretValue[], ...chunks: string[]) => stream(secrets, chunks).toString()

function cut(bytes: Uint8Array, cuts: readonly number[]): Uint8Array[] {
  const ends = [...new Set(cuts.map((at) => at % (bytes.length + 1)))].sort((a, b) => a - b)
  return [...ends, bytes.length].map((end, i) => bytes.slice(i === 0 ? 0 : ends[i - 1]!, end))
}

describe('what is held back', () => {
  const releasing = (...chunks: string[]) => {
    const redactor = new Redactor([secret('sk-ant-0123456789')])
    const decoded = (bytes: Uint8Array) => Buffer.from(bytes).toString()
    return chunks.map((chunk) => `${decoded(redactor.push(encoder.encode(chunk)))}|${decoded(redactor.release())}`)
  }

  test('is released where it is the beginning of a value by chance', () => {
    expect(releasing('12 tasks', ' are left')).toEqual(['12 task|s', ' are left|'])
    expect(releasing('tasks\x1b[0m', 'done')).toEqual(['task|s\x1b[0m', 'done|'])
    expect(releasing('s', 'k', 'i')).toEqual(['|s', '|k', 'i|'])
  })

  test('is not where it is more than three bytes of one', () => {
    expect(releasing('key: sk-', 'ant-0123456', '789.')).toEqual(['key: |sk-', '|', '[redacted:KEY].|'])
    expect(releasing('key: sk-a', 'nt')).toEqual(['key: |', '|'])
    expect(releasing('sk-', 'a', 'x')).toEqual(['|sk-', '|', 'ax|'])
  })
})

describe('what is found', () => {
  test('a value, split at every byte', () => {
    const whole = encoder.encode('before hunter2hunter3 after')
    for (let at = 0; at <= whole.length; at++) {
      expect(stream([secret('hunter2hunter3')], [whole.slice(0, at), whole.slice(at)]).toString()).toBe(
        'before [redacted:KEY] after',
      )
    }
  })

  test.each([
    ['aabaab', ['x aaaab', 'aab y'], 'x aa[redacted:KEY] y'],
    ['ababcab', ['-abab', 'abcab-'], '-ab[redacted:KEY]-'],
    ['aaaaaa', ['aaaaaaa', 'aaa-aaaaa'], '[redacted:KEY]-aaaaa'],
    ['abcabcabd', ['abcabcabca', 'bd abcabcabcabd'], 'abc[redacted:KEY] abc[redacted:KEY]'],
  ])('%s, which overlaps with itself', (value, chunks, expected) => {
    expect(text([secret(value)], ...chunks)).toBe(expected)
  })

  test('of two values, one of which begins the other, the longer one is found where it is present', () => {
    const secrets = [secret('hunter2', 'SHORT'), secret('hunter2-and-more', 'LONG')]
    expect(text(secrets, 'hunter2-and', '-more hunter2-and-less')).toBe('[redacted:LONG] [redacted:SHORT]-and-less')
  })

  test('values that overlap are taken out together', () => {
    expect(text([secret('abcdefgh', 'A'), secret('ghijklmnop', 'B')], 'xabcdefghijklmnopx')).toBe('x[redacted:B]x')
  })

  test.each(['\n', '\r\n', ' ', '\n\t  ', '\r\n\r\n'])(
    'a line end in a value stands for any white space (%j)',
    (space) => {
      expect(text([secret('first line\nsecond\n')], `x first line${space}`, `second y`)).toBe('x [redacted:KEY] y')
    },
  )

  describe('a key of several lines', () => {
    const lines = [
      '-----BEGIN PRIVATE KEY-----',
      'MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj',
      'x4jHk0ab2Fqz9LmNvRtYpQwE1sUoIiXeCbAgDfKhJlZnMrOuTyWvSx3G5d7H8B6M',
      'q2w3e4==',
      '-----END PRIVATE KEY-----',
    ]
    const key = secret(`${lines.join('\n')}\n`)

    test.each(['+', '-', '> ', '+  '])('that a patch or a quotation shows with %j before each line', (mark) => {
      const shown = lines.map((line) => `${mark}${line}\n`).join('')
      expect(text([key], shown)).toBe(`${mark}[redacted:KEY]\n`)
    })

    test('of which each line has its number', () => {
      const shown = text([key], lines.map((line, at) => `     ${at + 1}\u2192${line}\n`).join(''))
      for (const line of lines.filter(({ length }) => length === 64)) expect(shown).not.toContain(line)
      expect(shown).toContain('2\u2192[redacted:KEY]\n     3\u2192[redacted:KEY]')
    })

    test('but not its lines that are words and paths', () => {
      const words = secret('a-name-of-many-words-that-is-no-key-at-all\n/home/somebody/projects/a-long-name/2/src\nend')
      const path = 'in /home/somebody/projects/a-long-name/2/src a-name-of-many-words-that-is-no-key-at-all'
      expect(text([words], path)).toBe(path)
    })
  })

  test('colour and cursor sequences in the middle', () => {
    expect(text([secret('hunter2hunter3')], 'a hunt\x1b[01;3', '1mer2\x1b[0m\x1b[Khun\x1b(Bter3 z')).toBe(
      'a [redacted:KEY] z',
    )
  })

  test('a sequence with any parameter and any last letter there is, and with no other byte', () => {
    const split = (sequence: string) => text([secret('hunter2')], `hun\x1b[${sequence}ter2`)
    for (let byte = 0x20; byte <= 0x3f; byte++)
      expect(split(`${String.fromCharCode(byte)}m`), `parameter ${byte}`).toBe('[redacted:KEY]')
    for (let byte = 0x40; byte <= 0x7e; byte++)
      expect(split(String.fromCharCode(byte)), `letter ${byte}`).toBe('[redacted:KEY]')
    for (const byte of ['\u0001', '\u001f', '\u007f'])
      expect(split(byte), JSON.stringify(byte)).toBe(`hun\x1b[${byte}ter2`)
  })

  test('a value that begins with the letter that ends a colour sequence, or stands in one that is none', () => {
    expect(text([secret('mysecret')], 'my\x1b[31mysecret')).toBe('my\x1b[31[redacted:KEY]')
    expect(text([secret('hunter2')], 'hun\x1b[hunter2')).toBe('hun\x1b[[redacted:KEY]')
    expect(text([secret('hunter2')], 'hun\x1b[\u0007hunter2')).toBe('hun\x1b[\u0007[redacted:KEY]')
  })

  test('in the last bytes, and in one byte chunks', () => {
    expect(text([secret('hunter2')], ...'so it is hunter2'.split(''))).toBe('so it is [redacted:KEY]')
  })

  test('base64 in each of the three alignments, also wrapped at 76', () => {
    const value = 'hunter2-'.repeat(20)
    for (const before of ['', 'x', 'xy', 'xyz']) {
      const encoded = Buffer.from(`${before}${value}end`).toString('base64')
      const out = text([secret(value)], encoded.replace(/.{76}/g, '$&\r\n'))
      expect(out).toMatch(/^.{0,4}\[redacted:KEY\].{2,7}$/)
      expect(text([secret(value)], Buffer.from(`${before}${value}?>?`).toString('base64url'))).toContain(
        '[redacted:KEY]',
      )
    }
  })

  test('JSON, JSON in JSON, and what stricter encoders write', () => {
    const value = 'a"b\\c/d\né<&>x'
    const inner = JSON.stringify({ value })
    const python = JSON.stringify(value).replace('é', '\\u00e9')
    const php = python.replace('/', '\\/')
    const go = JSON.stringify(value).replace('<', '\\u003c').replace('>', '\\u003e').replace('&', '\\u0026')
    const out = text([secret(value)], `${inner} ${JSON.stringify({ inner })} ${python} ${php} ${go}`)
    expect(out).toBe(
      '{"value":"[redacted:KEY]"} {"inner":"{\\"value\\":\\"[redacted:KEY]\\"}"} ' +
        '"[redacted:KEY]" '.repeat(3).trim(),
    )
  })

  test('URL encodings with upper and lower hex', () => {
    const value = 'p@ss/w+rd (1)*~é'
    const form = new URLSearchParams({ v: value }).toString()
    const component = encodeURIComponent(value)
    const lower = component.replace(/%../g, (code) => code.toLowerCase())
    expect(text([secret(value)], `${form}&a=${component}&b=${lower}&c=${encodeURI(value)}.`)).toBe(
      'v=[redacted:KEY]&a=[redacted:KEY]&b=[redacted:KEY]&c=[redacted:KEY].',
    )
  })

  test('hex, also in lines of xxd', () => {
    const hex = Buffer.from('hunter2hunter3hunter4hunter5hunter6').toString('hex')
    const out = text(
      [secret('hunter2hunter3hunter4hunter5hunter6')],
      hex.replace(/.{60}/, '$&\n'),
      ' ',
      hex.toUpperCase(),
    )
    expect(out).toBe('[redacted:KEY] [redacted:KEY]')
  })

  test('a secret added in the middle, also where its first bytes are held back already', () => {
    const redactor = new Redactor([secret('hunter2', 'OLD')])
    const first = redactor.push(encoder.encode('hunter3 hunter'))
    redactor.add(secret('unter999', 'NEW'))
    const out = [first, redactor.push(encoder.encode('999 hunter2 unter999')), redactor.flush()]
    expect(Buffer.concat(out).toString()).toBe('hunter3 h[redacted:NEW] [redacted:OLD] [redacted:NEW]')
  })

  test('a secret added to the redactor from which another stream was begun, and the other way round', () => {
    const first = new Redactor([secret('unter999')])
    const second = first.another()
    const shown = [Buffer.from(second.push(encoder.encode('it is later'))).toString()]
    first.add(secret('later123', 'NEW'))
    shown.push(Buffer.from(second.push(encoder.encode('123 or later123'))).toString())
    shown.push(Buffer.from(second.flush()).toString())
    expect(shown.join('')).toBe('it is later123 or [redacted:NEW]')
    second.add(secret('last4567', 'LAST'))
    expect(first.redactText('unter999 later123 last4567')).toBe('[redacted:KEY] [redacted:NEW] [redacted:LAST]')
  })

  test('all strings of a JSON value', () => {
    const redactor = new Redactor([secret('hunter2')])
    expect(redactor.redactJson({ hunter2: ['a hunter2 b', 1, null, { x: 'no' }] })).toEqual({
      '[redacted:KEY]': ['a [redacted:KEY] b', 1, null, { x: 'no' }],
    })
  })
})

describe('what is left alone', () => {
  test('without secrets, and with ones too short to look for, the chunk itself passes', () => {
    const chunk = Uint8Array.of(1, 2, 255)
    expect(new Redactor([]).push(chunk)).toBe(chunk)
    expect(new Redactor([secret('short'), secret('  pad  '), secret('')]).push(chunk)).toBe(chunk)
  })

  test('only what may still become a secret is held back', () => {
    const redactor = new Redactor([secret('hunter2')])
    expect(Buffer.from(redactor.push(encoder.encode('password? '))).toString()).toBe('password? ')
    expect(Buffer.from(redactor.push(encoder.encode('xyz hunt'))).toString()).toBe('xyz ')
    expect(Buffer.from(redactor.push(encoder.encode('ed'))).toString()).toBe('hunted')
  })

  test('endless white space or colours do not make it hold back without end', () => {
    for (const filler of [' ', '\x1b[0m']) {
      const redactor = new Redactor([secret('hunter2 hunter3')])
      let out = redactor.push(encoder.encode('hunter2 ')).length
      for (let i = 0; i < 100; i++) out += redactor.push(encoder.encode(filler.repeat(1000))).length
      expect(out).toBeGreaterThan(100_000 * filler.length - 20_000)
    }
  })

  test('a name is made harmless for JSON and terminals', () => {
    expect(text([secret('hunter2', 'a"\n\x1b[31m')], 'hunter2')).toBe('[redacted:a____31m]')
  })

  test('the chunk may be written over afterwards', () => {
    const redactor = new Redactor([secret('hunter2hunter3')])
    const chunk = encoder.encode('hunter2')
    redactor.push(chunk)
    chunk.fill(0)
    expect(
      Buffer.from(redactor.push(encoder.encode('hunter'))).toString() + Buffer.from(redactor.flush()).toString(),
    ).toBe('hunter2hunter')
  })
})

/** The forms that a secret is looked for in, as a program would print them. */
const writers: ((value: string) => string)[] = [
  (value) => value,
  (value) => value.replaceAll('\n', '\r\n'),
  (value) => JSON.stringify(value).slice(1, -1),
  (value) => JSON.stringify(JSON.stringify(value)).slice(3, -3),
  (value) => encodeURIComponent(value),
  (value) => encodeURIComponent(value).replace(/%../g, (code) => code.toLowerCase()),
  (value) => new URLSearchParams({ v: value }).toString().slice(2),
  (value) => Buffer.from(value).toString('hex'),
  ...['', '1', '12'].flatMap((before) => [
    (value: string) => Buffer.from(`${before}${value}`).toString('base64'),
    (value: string) => Buffer.from(`${before}${value}#`).toString('base64url').replace(/.{9}/g, '$&\n'),
  ]),
]

/** Values are of few letters, so that they overlap with themselves, with each other, and with what is around them. */
const value = fc
  .string({ unit: fc.constantFrom('a', 'b', '"', '/', '\n', ' ', 'é'), minLength: 6, maxLength: 14 })
  .filter((each) => Buffer.byteLength(each.trim()) >= 6)
const around = fc.string({
  unit: fc.constantFrom('a', 'b', ' ', '\n', '\\', '%', 'Y', '=', '\x1b[1m', '\x1b[', 'é'),
  maxLength: 12,
})
const scene = fc.record({
  secrets: fc.array(value, { minLength: 1, maxLength: 3 }),
  parts: fc.array(fc.tuple(around, fc.nat(), fc.nat({ max: writers.length - 1 })), { maxLength: 5 }),
  end: around,
  cuts: fc.array(fc.nat(), { maxLength: 8 }),
})
const named = (values: readonly string[]) => values.map((each, i) => secret(each, `S${i}`))
const written = ({ secrets, parts, end }: { secrets: string[]; parts: [string, number, number][]; end: string }) =>
  parts.map(([before, which, form]) => before + writers[form]!(secrets[which % secrets.length]!.trim())).join('') + end

/** The draws of each property; the long run is `REDACT_DRAWS=5000`. */
const numRuns = Number(process.env['REDACT_DRAWS'] ?? 800)

describe('for any secrets, texts and cuts', () => {
  test('the cuts make no difference', () => {
    fc.assert(
      fc.property(scene, (each) => {
        const bytes = encoder.encode(written(each))
        const secrets = named(each.secrets)
        expect(stream(secrets, cut(bytes, each.cuts)).toString()).toBe(stream(secrets, [bytes]).toString())
      }),
      { numRuns },
    )
  })

  test('no form of a secret is left', () => {
    fc.assert(
      fc.property(scene, (each) => {
        const out = stream(named(each.secrets), cut(encoder.encode(written(each)), each.cuts)).toString()
        for (const one of each.secrets) {
          // Base64 has characters at its edges that are not the value's alone, so its middle is looked for below.
          for (const write of writers.slice(0, 8)) expect(out).not.toContain(write(one.trim()))
          for (const [shift, from] of [
            [0, 0],
            [1, 2],
            [2, 3],
          ] as const) {
            const length = shift + Buffer.byteLength(one.trim())
            const whole = Buffer.from(`${'#'.repeat(shift)}${one.trim()}`).toString('base64')
            expect(out.replace(/[\r\n]/g, '')).not.toContain(whole.slice(from, Math.floor((8 * length) / 6)))
          }
        }
      }),
      { numRuns },
    )
  })

  // Letters that the text around does not have, and no value overlaps with itself: it is known where each one ends.
  const apart = fc.string({ unit: fc.constantFrom('ä', 'ö', 'ü'), minLength: 3, maxLength: 12 })
  const one = apart.map((each) => `ß${each}`)
  const texts = fc.array(
    fc.string({ unit: fc.constantFrom('a', '\n', ' ', '\x1b[1m', '\x1b', 'é', '[', '7'), minLength: 1 }),
    { minLength: 1, maxLength: 6 },
  )

  test('a text is changed only where it holds a value', () => {
    fc.assert(
      fc.property(one, texts, fc.array(fc.nat(), { maxLength: 8 }), (one, pieces, cuts) => {
        const bytes = encoder.encode(pieces.join(one))
        expect(stream([secret(one)], cut(bytes, cuts)).toString()).toBe(pieces.join('[redacted:KEY]'))
      }),
      { numRuns },
    )
  })

  test('what is released shows no more than the first three bytes of a value, of which the rest is still replaced', () => {
    const bytesOf = (part: string) => Buffer.from(part).toString('latin1')
    const quoted = (part: string) =>
      part.replaceAll(/[^\w]/g, (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`)
    fc.assert(
      fc.property(one, texts, fc.array(fc.nat(), { maxLength: 8 }), (value, pieces, cuts) => {
        const redactor = new Redactor([secret(value)])
        const out: Uint8Array[] = []
        for (const chunk of cut(encoder.encode(pieces.join(value)), cuts))
          out.push(redactor.push(chunk), redactor.release())
        out.push(redactor.flush())
        const [a, b, c] = Array.from(bytesOf(value), quoted)
        const expected = pieces.map((piece) => quoted(bytesOf(piece))).join(`(?:${a}(?:${b}${c}?)?)?\\[redacted:KEY\\]`)
        expect(Buffer.concat(out).toString('latin1')).toMatch(new RegExp(`^${expected}$`))
      }),
      { numRuns },
    )
  })

  test('skipping by the table of beginnings skips exactly what reading each byte would', () => {
    fc.assert(
      fc.property(scene, (each) => {
        const bytes = encoder.encode(written(each))
        const secrets = named(each.secrets)
        // The byte after a single one is not known, so nothing is ignored.
        const single = Array.from(bytes, (byte) => Uint8Array.of(byte))
        expect(stream(secrets, single).toString()).toBe(stream(secrets, [bytes]).toString())
      }),
      { numRuns },
    )
  })

  test('bytes that hold no secret come out as they went in', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 6 }), (chunks) => {
        expect(stream([secret('hunter2 hunter3')], chunks)).toEqual(Buffer.concat(chunks))
      }),
      { numRuns },
    )
  })

  test('a whole text gives the same result as a stream', () => {
    fc.assert(
      fc.property(scene, (each) => {
        const secrets = named(each.secrets)
        expect(new Redactor(secrets).redactText(written(each))).toBe(
          stream(secrets, [encoder.encode(written(each))]).toString(),
        )
      }),
      { numRuns },
    )
  })
})

describe('the automaton, on patterns shorter than a secret may be', () => {
  const ends = (pattern: string, chunks: readonly string[]) => {
    const scan = new Scan(buildAutomaton([{ bytes: encoder.encode(pattern), label: 'x' }], 'white_space'))
    const matches: { start: number; end: number; label: string }[] = []
    const whole = encoder.encode(chunks.join(''))
    let at = 0
    for (const chunk of chunks) {
      scan.feed(whole, { from: at, end: at + chunk.length }, matches)
      at += chunk.length
    }
    return matches.map(({ start, end }) => [start, end])
  }

  test('the two vectors that a matcher without failure links gets wrong', () => {
    expect(ends('aab', ['x aa', 'ab y'])).toEqual([[3, 6]])
    expect(ends('ababc', ['-abab', 'abc-'])).toEqual([[3, 8]])
  })

  test('every pattern and text over two letters, cut at every place, against indexOf', () => {
    const words = (length: number) =>
      Array.from({ length: 2 ** length }, (_, bits) => bits.toString(2).padStart(length, '0'))
    for (const pattern of [...words(2), ...words(3), ...words(4)]) {
      for (const whole of words(8)) {
        const expected: number[][] = []
        for (let at = whole.indexOf(pattern); at >= 0; at = whole.indexOf(pattern, at + 1))
          expected.push([at, at + pattern.length])
        expect(ends(pattern, [whole])).toEqual(expected)
        expect(ends(pattern, whole.split(''))).toEqual(expected)
      }
    }
  })
})
