import { describe, expect, it } from 'vitest'
import { merged, recording, specOf } from '../../../test/kit/harness-recordings.ts'
import { killed, line, secret, toldWords } from '../../../test/kit/told-words.ts'
import { codexDialogue } from './dialogue.ts'

const note = (method: string, params: object) => line({ method, params: { threadId: 'own', turnId: 't', ...params } })
const begins = (id: string, more: object = {}) =>
  note('item/started', { item: { type: 'agentMessage', id, text: '' }, ...more })
const says = (itemId: string, delta: string, more: object = {}) =>
  note('item/agentMessage/delta', { itemId, delta, ...more })
const whole = (id: string, text: string, more: object = {}) =>
  note('item/completed', { item: { type: 'agentMessage', id, text }, ...more })
const ends = (status = 'completed', error: object | null = null) =>
  note('turn/completed', { turn: { id: 't', status, error } })
const ready = [line({ id: 2, result: { thread: { id: 'own' } } }), line({ id: 3, result: { turn: { id: 't' } } })]

const { play, told, said } = toldWords((redaction) => codexDialogue(specOf({ harness: 'codex' }), redaction), ready)

describe('what codex says', () => {
  it('is told in the pieces in which it was recorded, once, and is the result', () => {
    const dialogue = codexDialogue(specOf({ harness: 'codex' }))
    const { events } = merged([dialogue.open(), dialogue.push(recording('codex', 'success')), dialogue.end(killed)])
    const of = (kind: string) =>
      events.flatMap((event) => (event.kind === kind && 'text' in event.data ? [event.data.text] : []))
    expect(of('thinking')).toEqual(['Let me think.'])
    const done = ['Done: hello.', 'txt now hold', 's hello.']
    expect(of('text')).toEqual(['I will creat', 'e the file.', ...done])
    expect(of('result')).toEqual([done.join('')])
  })

  it('comes whole where no piece came, and its rest where the pieces end early', () => {
    expect(told(begins('m'), whole('m', 'It is.'), begins('n'), says('n', 'And '), whole('n', 'And on.'))).toEqual([
      ['text', 'It is.'],
      ['text', 'And '],
      ['text', 'on.'],
    ])
    // Of a version that tells of no beginning.
    expect(told(says('m', 'It '), whole('m', 'It is.'))).toEqual([['text', 'It is.']])
  })

  it('is all told where it is not what the pieces were, whose words stay', () => {
    expect(told(begins('m'), says('m', 'It had'), whole('m', 'It is.'), ends())).toEqual([
      ['text', 'It had'],
      ['text', 'It is.'],
      ['result', 'It is.'],
    ])
    expect(said(begins('m'), says('m', 'It is. \n'), whole('m', 'It is.'))).toBe('It is. \n')
    expect(said(begins('m'), says('m', ' is.'), says('m', 'It'), whole('m', 'It is.'))).toBe(' is.ItIt is.')
  })

  it('is told once where pieces come late, twice begun, of two at once, or of nothing that is known', () => {
    expect(said(begins('m'), says('m', 'It is.'), whole('m', 'It is.'), says('m', ' is.'))).toBe('It is.')
    expect(said(says('x', 'No'), says('own', 'No'), note('item/agentMessage/delta', { delta: 3 }))).toBe('')
    const two = [says('m', 'One, '), says('n', 'Two.'), says('m', 'and on. '), whole('m', 'One, and on. ')]
    expect(said(begins('m'), begins('n'), ...two, whole('n', 'Two.'))).toBe('One, Two.and on. ')
    const again = [begins('m'), says('m', 'Half'), begins('m'), says('m', 'Half a'), whole('m', 'Half a loaf.')]
    expect(said(...again)).toBe('HalfHalf a loaf.')
  })

  it('by a subagent, or in a thread of nobody, is not told in pieces', () => {
    const spawned = { type: 'collabAgentToolCall', id: 'c', tool: 'spawnAgent', receiverThreadIds: ['sub'] }
    const sub = { threadId: 'sub' }
    const spoken = [begins('m', sub), says('m', 'It ', sub), whole('m', 'It is.', sub)]
    expect(said(note('item/started', { item: spawned }), ...spoken)).toBe('It is.')
    expect(said(...spoken.slice(0, 2))).toBe('')
  })

  it('stays where codex dies, fails or is interrupted in the middle, and before the error', () => {
    const half = [begins('m'), says('m', 'It had'), says('m', ' c')]
    expect(said(...half)).toBe('It had c')
    expect(told(...half, ends('interrupted')).at(-1)).toEqual(['result', ''])
    const failed = note('error', { error: { message: 'It broke.' }, willRetry: true })
    expect(told(...half, failed)).toEqual([
      ['text', 'It had'],
      ['text', ' '],
      ['text', 'c'],
      ['error', null],
    ])
    expect(play(...half).dialogue.outcome(killed).message).toMatch(/in the middle of its turn/)
  })

  it('shows no secret that comes in pieces, also while a subagent speaks and a tool ends', () => {
    const sub = { threadId: 'sub' }
    const spawned = { type: 'collabAgentToolCall', id: 'c', tool: 'spawnAgent', receiverThreadIds: ['sub'] }
    const text = `It is ${secret} — yes`
    const letters = text.split('').map((letter) => says('m', letter))
    const between = [
      note('item/started', { item: spawned }),
      whole('s', '', sub),
      note('item/completed', { item: spawned }),
    ]
    for (const at of [8, 20]) {
      const spoken = [begins('m'), ...letters.slice(0, at), ...between, ...letters.slice(at), whole('m', text)]
      expect(said(...spoken)).toBe('It is [redacted:VAULT] — yes')
    }
  })

  it('is no more and no less where it is long', () => {
    const text = 'Words and more words. '.repeat(500_000)
    const pieces = Array.from({ length: 4 }, (_, index) =>
      says('m', text.slice(index * 200_000, (index + 1) * 200_000)),
    )
    const spoken = said(begins('m'), ...pieces, whole('m', text))
    expect([spoken.length, spoken === text]).toEqual([text.length, true])
  })
})
