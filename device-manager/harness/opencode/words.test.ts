import { describe, expect, it } from 'vitest'
import { merged, recording, specOf } from '../../../test/kit/harness-recordings.ts'
import { killed, line, secret, toldWords } from '../../../test/kit/told-words.ts'
import { opencodeDialogue } from './dialogue.ts'

const eventOf = (type: string, properties: object) => line({ event: { type, properties: { ...properties } } })
const main = 'ses_main'
const message = (id: string, sessionID = main) =>
  eventOf('message.updated', { info: { id, sessionID, role: 'assistant', agent: 'build' } })
const ready = [
  line({ stdout: JSON.stringify({ svc: 'ready', directory: '/w', servers: [] }) }),
  line({ answer: { id: 1, status: 200, body: { id: main, directory: '/w' } } }),
  message('m1'),
]
const part = (id: string, text: string, changes: object = {}) =>
  eventOf('message.part.updated', {
    part: { id, type: 'text', sessionID: main, messageID: 'm1', text, time: { start: 1 }, ...changes },
  })
const whole = (id: string, text: string, changes: object = {}) =>
  part(id, text, { time: { start: 1, end: 2 }, ...changes })
const says = (partID: string, delta: string, changes: object = {}) =>
  eventOf('message.part.delta', { sessionID: main, messageID: 'm1', partID, field: 'text', delta, ...changes })
const idle = eventOf('session.idle', { sessionID: main })

const { play, told, said } = toldWords(
  (redaction) => opencodeDialogue(specOf({ harness: 'opencode' }), redaction),
  ready,
)

describe('what opencode says', () => {
  it('is told in the pieces in which it was recorded, once, and is the result', () => {
    const dialogue = opencodeDialogue(specOf({ harness: 'opencode' }))
    const { events } = merged([dialogue.open(), dialogue.push(recording('opencode', 'success')), dialogue.end(killed)])
    const of = (kind: string) =>
      events.flatMap((event) => (event.kind === kind && 'text' in event.data ? [event.data.text] : []))
    expect(of('thinking')).toEqual(['A file, then.'])
    expect(of('text')).toEqual(['I write it.', 'The file is ', 'there.'])
    expect(of('result')).toEqual(['The file is there.'])
  })

  it('comes whole where no piece came, and its rest where the pieces end early', () => {
    expect(told(whole('p', 'It is.'), part('q', ''), says('q', 'And '), whole('q', 'And on.'), idle)).toEqual([
      ['text', 'It is.'],
      ['text', 'And '],
      ['text', 'on.'],
      ['result', 'And on.'],
    ])
  })

  it('is told once by a version that repeats all of it with each piece', () => {
    const pieces = ['', 'It', 'It had', 'It had', 'It had been'].map((text) => part('p', text))
    expect(told(...pieces, whole('p', 'It had been'))).toEqual([
      ['text', 'It'],
      ['text', ' had'],
      ['text', ' been'],
    ])
  })

  it('is all told where it is not what the pieces were, but for the white space that opencode cuts off', () => {
    expect(said(part('p', ''), says('p', 'It had'), whole('p', 'It has.'))).toBe('It hadIt has.')
    expect(said(part('p', ''), says('p', 'It has.\n\n'), whole('p', 'It has.'))).toBe('It has.\n\n')
  })

  it('is told once where pieces come late, of no part that is known, of another field or of another session', () => {
    const late = [part('p', ''), says('p', 'It is.'), whole('p', 'It is.'), says('p', ' is.'), whole('p', 'It is.')]
    expect(said(...late)).toBe('It is.')
    const others = [says('p', 'No', { field: 'metadata' }), says('p', 'No', { sessionID: 'ses_b' }), says('x', 'No')]
    expect(said(part('p', ''), ...others, eventOf('message.part.delta', { delta: 3 }))).toBe('')
  })

  it('is neither what a person says, nor what opencode wrote itself, nor a part that nobody makes', () => {
    const user = eventOf('message.updated', { info: { id: 'm2', sessionID: main, role: 'user' } })
    expect(said(user, part('p', 'Go.', { messageID: 'm2' }), says('p', ' Now.'))).toBe('')
    expect(said(part('p', 'Summary', { synthetic: true }), says('p', '!'))).toBe('')
    expect(said(part('p', 'Note', { time: undefined }), says('p', '!'))).toBe('')
  })

  it('by a subagent is told once it is whole', () => {
    const sub = { sessionID: 'ses_sub', messageID: 'm3' }
    const created = eventOf('session.created', { info: { id: 'ses_sub', parentID: main } })
    const spoken = [created, message('m3', 'ses_sub'), part('p', '', sub), says('p', 'It ', sub)]
    expect(said(...spoken)).toBe('')
    expect(said(...spoken, whole('p', 'It is.', sub))).toBe('It is.')
  })

  it('stays where opencode dies, fails or comes to rest in the middle, and before the error', () => {
    const half = [part('p', ''), says('p', 'It had'), says('p', ' c')]
    expect(said(...half)).toBe('It had c')
    expect(told(...half, idle).map(([kind]) => kind)).toEqual(['text', 'text', 'text', 'result'])
    const error = eventOf('session.error', {
      sessionID: main,
      error: { name: 'APIError', data: { message: 'Broken.' } },
    })
    const status = { type: 'retry', attempt: 1, message: 'Broken.' }
    const retry = eventOf('session.status', { sessionID: main, status })
    for (const each of [error, retry]) expect(told(...half, each).at(-1)).toEqual(['error', null])
    expect(play(...half).dialogue.outcome(killed)).toMatchObject({ exitReason: 'error', sessionId: main })
  })

  it('shows no secret that comes in pieces, and puts halves of characters together', () => {
    const text = `It is ${secret} \u{1f980} — yes`
    const pieces = text.split('').map((letter) => says('p', letter))
    expect(said(part('p', ''), ...pieces, whole('p', text))).toBe('It is [redacted:VAULT] \u{1f980} — yes')
  })
})
