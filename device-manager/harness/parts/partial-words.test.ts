import { expect, it } from 'vitest'
import { streamRedactor, wholeValues } from '../../run-host/output/redaction.ts'
import { Redactor } from '../../../shared/lib/redact.ts'
import { asItIs, streamAsItIs } from './event-pieces.ts'
import { PartialWords } from './partial-words.ts'

const secret = 'correct-horse-battery-staple'
function partialWords() {
  const secrets = [{ name: 'VAULT', value: secret }]
  return new PartialWords(wholeValues(new Redactor(secrets)).text, () => streamRedactor(new Redactor(secrets)))
}
const textOf = ({ data }: ReturnType<PartialWords['flush']>[number]) => ('text' in data ? (data.text ?? '') : '')
/** Of one kind, joined: what may be the beginning of a secret comes a piece later. */
const said = (...outputs: ReturnType<PartialWords['flush']>[]) =>
  outputs
    .flat()
    .map((event) => [event.kind, textOf(event)] as const)
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

it('goes on with a message after others, and knows which pieces are just the whole', () => {
  const words = partialWords()
  const told = said(
    words.piece('text', { id: 'm', text: 'One, ' }),
    words.piece('text', { id: 'n', text: 'Two. ' }),
    words.piece('text', { id: 'm', text: 'and on. ' }),
    words.whole('text', { id: 'm', text: 'One, and on. ' }),
    words.whole('text', { id: 'n', text: 'Two. Three.' }),
    words.piece('text', { id: 'k', part: 0, text: 'Fo' }),
    words.piece('text', { id: 'k', part: 1, text: 'Four' }),
    words.whole('text', { id: 'k', text: 'Four' }),
    words.whole('text', { id: 'k', text: 'Foam' }),
  )
  expect(told).toEqual([['text', 'One, Two. and on. Three.FoFouram']])
})

it('tells nothing more of a whole that ends before its pieces, and all of one that begins anew', () => {
  const words = partialWords()
  words.piece('text', { id: 'm', text: 'It is so.\n' })
  expect(words.whole('text', { id: 'm', text: 'It is so.' })).toEqual([])
  words.piece('text', { id: 'm', text: 'Half' })
  words.begin('m')
  const anew = [words.piece('text', { id: 'm', text: 'Ha' }), words.whole('text', { id: 'm', text: 'Half a loaf' })]
  expect(said(...anew)).toEqual([['text', 'Half a loaf']])
})

it('tells what is added to a message that is repeated with each piece', () => {
  const words = partialWords()
  const told = ['', 'It', 'It is', 'It', 'It is so'].map((text) =>
    said(words.soFar('text', { id: 'm', text }), words.release()),
  )
  expect(told).toEqual([[], [['text', 'It']], [['text', ' is']], [], [['text', ' so']]])
  expect(words.whole('text', { id: 'm', text: 'It is so' })).toEqual([])
})

it('holds back what may be a secret also while others speak', () => {
  const words = partialWords()
  const [begins, ends] = [secret.slice(0, 9), secret.slice(9)]
  const told = said(
    words.piece('text', { id: 'm', text: begins }),
    words.whole('text', { id: null, text: 'A subagent.', parent: { parentToolCallId: 'c' } }),
    words.piece('text', { id: 'm', text: ends }),
    words.flush(),
  )
  expect(told).toEqual([['text', 'A subagent.[redacted:VAULT]']])
})

it('puts a character together whose halves come in two pieces', () => {
  const crab = '\u{1f980}'
  const words = partialWords()
  const told = said(
    ...[...`${crab}!`.split(''), crab[0]!].map((text) => words.piece('text', { id: 'm', text })),
    words.whole('text', { id: 'm', text: `${crab}!${crab}.` }),
  )
  expect(told).toEqual([['text', `${crab}!${crab}.`]])
  words.piece('text', { id: 'n', text: `So ${crab[0]}` })
  expect(said(words.flush())).toEqual([['text', '\ufffd']])
})

it('takes a flood of letters: to copy what was said at each of them would take minutes', () => {
  const words = new PartialWords(asItIs, streamAsItIs)
  const letters = 300_000
  let chars = 0
  for (let letter = 0; letter < letters; letter++)
    chars += words.piece('text', { id: 'm', text: 'y' }).reduce((sum, event) => sum + textOf(event).length, 0)
  expect(chars).toBe(letters)
  expect(words.whole('text', { id: 'm', text: 'y'.repeat(letters) })).toEqual([])
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
