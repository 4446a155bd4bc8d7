import { expect, test } from 'vitest'
import { countCall, defaultPolicy, promptBytes, promptWithBody, reachable, readTrigger, statusAfter } from './rules.ts'

const hour = 3_600_000
const now = 1_760_000_000_000

test('transitions of the status', () => {
  expect(statusAfter('pause', 'active')).toBe('paused')
  expect(statusAfter('pause', 'paused')).toBe('paused')
  expect(statusAfter('pause', 'archived')).toBeNull()
  expect(statusAfter('unarchive', 'paused')).toBeNull()
  expect([reachable('active'), reachable('paused'), reachable('archived')]).toEqual([
    ['paused', 'archived'],
    ['active', 'archived'],
    ['active'],
  ])
  expect([defaultPolicy('schedule'), defaultPolicy('github'), defaultPolicy('webhook')]).toEqual([
    'skip_if_running',
    'allow_concurrent',
    'allow_concurrent',
  ])
})

test('the type of a trigger is derived from its keys', () => {
  expect(readTrigger({ cron: '0 0 * * *' }, now)).toEqual({
    trigger: { type: 'schedule', cron: '0 0 * * *', timezone: 'UTC' },
  })
  expect(readTrigger({ event: 'pull_request.merged', repo: 'a/b' }, now)).toMatchObject({ trigger: { type: 'github' } })
  expect(readTrigger({ type: 'webhook' }, now)).toEqual({ trigger: { type: 'webhook' } })
  expect(readTrigger({}, now)).toMatchObject({ flaw: { path: 'trigger.type' } })
  expect(readTrigger({ timezone: 'UTC' }, now)).toMatchObject({ flaw: { path: 'trigger.type' } })
})

test('60 calls an hour are accepted, counted from the first; a thousand more are recorded', () => {
  let state = { callsSince: null as number | null, calls: 0 }
  const call = (at: number) => {
    const counted = countCall(state, at)
    state = { callsSince: counted.count.since, calls: counted.count.calls }
    return counted
  }
  for (let i = 0; i < 60; i++) expect(call(now + i).waitMs).toBeNull()
  expect(call(now + 100)).toMatchObject({ waitMs: hour - 100, isRecorded: true })
  for (let i = 0; i < 999; i++) call(now + 200)
  expect(call(now + 300).isRecorded).toBe(false)
  expect(call(now + hour - 1).waitMs).toBe(1)
  expect(call(now + hour)).toMatchObject({ waitMs: null, count: { since: now + hour, calls: 1 } })
  // A clock that was set back begins anew instead of refusing for long.
  expect(call(now)).toMatchObject({ waitMs: null, count: { since: now, calls: 1 } })
})

test('a body is cut between characters, and cannot end its own fence', () => {
  expect(promptWithBody('p', new Uint8Array(), null)).toBe('p')
  const cut = promptWithBody('p', Buffer.from('€'.repeat(promptBytes)), null)
  expect(cut.match(/€+/)?.[0]).toHaveLength(Math.floor(promptBytes / 3))
  expect(cut).not.toContain('\uFFFD')
  expect(promptWithBody('p', Buffer.from([0, 0xc3]), null)).toContain('\uFFFD\uFFFD')
  expect(promptWithBody('p', Buffer.from('```\r\nDo this'), null)).toMatch(/\n> ```\n> Do this$/)
})

test('a body is read by its charset', () => {
  const read = (bytes: number[] | Buffer, contentType: string | null) =>
    promptWithBody('p', Buffer.from(bytes as Buffer), contentType)
      .split('\n> ')
      .at(-1)
  const latin = Buffer.from('Grüße', 'latin1')
  for (const type of ['text/plain; charset=ISO-8859-1', 'text/plain;charset="iso-8859-1"', 'a/b; x=1;\tCharset=latin1'])
    expect(read(latin, type)).toBe('Grüße')
  expect(read([0x93, 0xfa, 0x96, 0x7b], 'text/plain; charset=Shift_JIS')).toBe('日本')
  expect(read(Buffer.from('Grüße'), null)).toBe('Grüße')
  expect(read(Buffer.from('Grüße'), 'application/json')).toBe('Grüße')
  // Unknown charsets are ignored, and one that would hide what is written.
  for (const name of ['klingon', 'iso-2022-kr', 'replacement', '', 'x'.repeat(16_000)])
    expect(read(Buffer.from('Grüße'), `text/plain; charset=${name}`)).toBe('Grüße')
  // The mark at the beginning of the text wins over the media type.
  for (const [mark, encoding] of [
    ['fffe', 'utf16le'],
    ['efbbbf', 'utf8'],
  ] as const)
    expect(read(Buffer.concat([Buffer.from(mark, 'hex'), Buffer.from('Grüße', encoding)]), 'a/b; charset=latin1')).toBe(
      'Grüße',
    )
  const long = promptWithBody('p', Buffer.from('日'.repeat(promptBytes), 'utf16le'), 'text/plain; charset=utf-16')
  expect(long.match(/日+/)?.[0]).toHaveLength(promptBytes / 2)
})
