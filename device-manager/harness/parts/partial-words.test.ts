import { expect, it } from 'vitest'
import { streamRedactor, wholeValues } from '../../run-host/output/redaction.ts'
import { Redactor } from '../../../shared/lib/redact.ts'
import { PartialWords } from './partial-words.ts'

const secret = 'correct-horse-battery-staple'
function partialWords() {
  const secrets = [{ name: 'VAULT', value: secret }]
  return new PartialWords(wholeValues(new Redactor(secrets)).text, () => streamRedactor(new Redactor(secrets)))
}
/** Of one kind, joined: what may be the beginning of a secret comes a piece later. */
const said = (...outputs: ReturnType<PartialWords['flush']>[]) =>
  outputs
    .flat()
    .map(({ kind, data }) => [kind, 'text' in data ? (data.text ?? '') : ''] as const)
    .reduce<[string, string][]>((all, [kind, text]) => {
      const last = all.at(-1)
      if (last?.[0] === kind) last[1] += text
      else all.push([kind, text])
      return all
    }, [])

it('tells each word once, of the whole only what the pieces had not', () => {
  const words = partialWords()
  expect(said(words.piece('text', { id: 'm', text: 'It is ' }))).toEqual([['text', 'It is ']])
  expect(said(words.piece('text', { id: 'm', text: 'so' }), words.release())).toEqual([['text', 'so']])
  expect(said(words.whole('text', { id: 'm', text: 'It is so, yes' }))).toEqual([['text', ', yes']])
  expect(said(words.whole('text', { id: 'm', text: 'It is so' }))).toEqual([['text', 'It is so']])
})

it('knows parts and kinds apart, also where they begin alike', () => {
  const words = partialWords()
  words.piece('thinking', { id: 'm', part: 0, text: 'Hm' })
  words.piece('text', { id: 'm', part: 1, text: 'Hm' })
  words.piece('text', { id: 'm', part: 2, text: 'Hm, two' })
  expect(said(words.whole('text', { id: 'm', text: 'Hm, one' }))).toEqual([['text', ', one']])
  expect(said(words.whole('thinking', { id: 'm', text: 'Hm!' }))).toEqual([['thinking', '!']])
  expect(said(words.whole('text', { id: 'm', text: 'Hm, two' }))).toEqual([])
})

it('tells all of a message that begins otherwise than its pieces, and of one without any', () => {
  const words = partialWords()
  words.piece('text', { id: 'm', text: 'Half of a' })
  expect(said(words.whole('text', { id: 'm', text: 'Half a loaf' }))).toEqual([['text', 'Half a loaf']])
  expect(said(words.whole('text', { id: 'n', text: 'Half of a loaf' }))).toEqual([['text', 'Half of a loaf']])
  expect(said(words.whole('text', { id: null, text: 'Half' }))).toEqual([['text', 'Half']])
})

it('shows no secret that comes in pieces, or half in pieces and half in the whole', () => {
  for (const cut of [1, 8, secret.length - 1]) {
    const words = partialWords()
    const whole = `It is ${secret} — yes`
    const pieces = whole.slice(0, 6 + cut).split('')
    const told = said(
      ...pieces.map((text) => words.piece('text', { id: 'm', text })),
      words.whole('text', { id: 'm', text: whole }),
    )
    expect(told.map(([, text]) => text).join('')).toBe('It is [redacted:VAULT] — yes')
  }
})

it('tells a message of a megabyte in pieces, and the rest of a longer one with the whole', () => {
  const words = partialWords()
  const piece = 'x'.repeat(300 * 1024)
  const pieces = Array.from({ length: 5 }, () => words.piece('text', { id: 'm', text: piece }))
  const lengthOf = (events: ReturnType<PartialWords['flush']>) =>
    said(events)
      .map(([, text]) => text)
      .join('').length
  expect(pieces.map(lengthOf)).toEqual([piece.length, piece.length, piece.length, 0, 0])
  expect(words.piece('text', { id: 'm', text: 'small' })).toEqual([])
  const whole = `${piece.repeat(5)}small`
  expect(lengthOf(words.whole('text', { id: 'm', text: whole }))).toBe(whole.length - 3 * piece.length)
})
