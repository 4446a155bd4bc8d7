import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { headAsksForSkills, isSkillAddress, scannedForSkills, skillScan, whyReadOtherwise } from './server-skills.ts'

const judged = (text: string) => scannedForSkills(Buffer.from(text))
const call = (method: string, params: unknown = {}) => JSON.stringify({ jsonrpc: '2.0', id: 7, method, params })
const read = (uri: string) => call('resources/read', { uri })

describe('a message asks for skills', () => {
  test.each([
    ['by its method', call('skills/list')],
    ['by its method in capitals', call('Skills/Get')],
    ['by its method behind blanks', call(' \t\u200bskills/list')],
    ['by its method behind 300 blanks', call(`${' '.repeat(300)}skills/list`)],
    ['by the address', read('skill://a/SKILL.md')],
    ['by the address in capitals', read('SKILL:a')],
    ['by the address behind blanks', read(' \n\ufeffskill:a')],
    ['by the address with blanks in it', read('ski\tll\n:a')],
    ['by the address behind 300 blanks', read(`${' '.repeat(300)}skill:a`)],
    ['by the address behind blanks that are encoded', read(`${'%20'.repeat(300)}skill:a`)],
    ['by the address as it is encoded', read('%73kill%3A//a')],
    ['by the address with a letter that is s in capitals', read('\u017fkill://a')],
    ['by the address with a letter that is k in small letters', read('s\u212aill://a')],
    ['by what is to be subscribed', call('resources/subscribe', { uri: 'skill://a' })],
    [
      'by what is to be listened to',
      call('subscriptions/listen', { notifications: { resourceSubscriptions: ['x:', 'skill:a'] } }),
    ],
    [
      'by what is to be completed',
      call('completion/complete', { ref: { type: 'ref/resource', uri: 'skill://{a}' }, argument: {} }),
    ],
    ['by what may be read as a folder', call('resources/directory/read', { uri: 'skill://a' })],
    ['in one of several', `[${call('ping')},${call('skills/list')}]`],
    ['by parameters in their order', call('resources/read', ['skill://a'])],
    ['by parameters that are a text', call('resources/read', 'skill://a')],
    ['by parameters in a list', call('resources/read', [{ uri: 'skill://a' }])],
    ['by an address in a list', call('resources/read', { uri: ['skill://a'] })],
    ['by several addresses', call('resources/read', { uris: ['skill://a'] })],
    ['by a key that comes twice, the first time', '{"method":"skills/list","method":"ping"}'],
    ['by a key that comes twice, the second time', '{"method":"ping","method":"skills/list"}'],
    ['by parameters that come twice', '{"params":{"uri":"skill:a"},"method":"resources/read","params":{}}'],
    ['by an address that comes twice', '{"params":{"uri":"skill:a","uri":"x:"}}'],
    ['by a key in capitals', '{"Method":"skills/list"}'],
    ['by a key in capitals within', '{"PARAMS":{"URI":"skill:a"}}'],
    ['by a key that has the letter that is s in capitals', '{"param\u017f":{"uri":"skill:a"}}'],
    ['by a key that ends at a zero', String.raw`{"method\u0000x":"skills/list"}`],
    ['in escapes', String.raw`{"\u006dethod":"\u0073kills\/list"}`],
    ['in escapes of capitals', String.raw`{"par\u0061ms":{"u\u0072i":"\u0053kill\u003A"}}`],
    ['by arguments that are none to some', '{"params":{"Arguments":{"uri":"skill:a"}}}'],
  ])('%s', (_, text) => expect(judged(text)).toBe('found'))

  test.each([
    [
      'a call of a tool',
      call('tools/call', { name: 'skills/list', arguments: { uri: 'skill://a', text: 'skill: x' } }),
    ],
    ['a prompt', call('prompts/get', { name: 'skill:a', arguments: { uri: 'skill://a' } })],
    ['another address', read('file:///skill:a')],
    ['another address that begins alike', read('skills://a')],
    ['an address that is longer than is kept', read(`data:${'x'.repeat(1_000)}`)],
    ['another method', call('resources/list')],
    ['another method that begins alike', call('skillset/list')],
    ['an answer', '{"id":1,"result":{"uri":"skill:a","method":"skills/list"}}'],
    ['a method within', '{"id":1,"result":{"method":"skills/list"},"error":[{"params":{"uri":"skill:a"}}]}'],
    ['several', `[${call('ping')},${call('tools/list')}]`],
    ['none', '[]'],
  ])('and so does not: %s', (_, text) => expect(judged(text)).toBe('fine'))

  test.each([
    '',
    '1',
    '"skills/list"',
    'null',
    '[1]',
    '[[{"method":"skills/list"}]]',
    '{} {}',
    '{method:1}',
    '\ufeff{}',
  ])('and this is no message: %j', (text) => expect(judged(text)).toBe('broken'))

  test('and in UTF-16 it is no message either', () => {
    const bytes = Buffer.from(call('skills/list'), 'utf16le')
    expect([scannedForSkills(bytes), scannedForSkills(bytes.swap16())]).toEqual(['broken', 'broken'])
    expect(judged(`\ufeff${call('ping')}`)).toBe('broken')
    expect(scannedForSkills(Buffer.from('{"method":"skills\xC0\xAFlist"}', 'latin1'))).toBe('broken')
  })

  test('wherever it is cut, and never after the byte by which it does', () => {
    const said = fc.constantFrom('skills/list', 'skill:a', 'ping', 'file:a', ' SKILL:a')
    const key = fc.constantFrom('method', 'params', 'uri', 'id', 'arguments', 'ref', 'METHOD')
    const value = fc.letrec<{ any: unknown }>((tie) => ({
      any: fc.oneof(
        { maxDepth: 4 },
        said,
        fc.array(tie('any'), { maxLength: 3 }),
        fc.dictionary(key, tie('any'), { maxKeys: 4 }),
      ),
    })).any
    fc.assert(
      fc.property(fc.dictionary(key, value, { maxKeys: 4 }), fc.array(fc.nat(200)), (message, cuts) => {
        const bytes = Buffer.from(JSON.stringify(message))
        expect(judged(bytes.toString())).toBe(asks(message) ? 'found' : 'fine')
        const scan = skillScan()
        let from = 0
        for (const to of [...cuts.toSorted((a, b) => a - b), bytes.length]) {
          scan.push(bytes.subarray(from, to))
          from = Math.max(from, to)
        }
        expect(scan.end()).toBe(asks(message) ? 'found' : 'fine')
      }),
    )
  })
})

/** The rule as it reads on a message that was parsed. */
function asks(message: Record<string, unknown>): boolean {
  const isMethod = (value: unknown): boolean =>
    typeof value === 'string' ? value === 'skills/list' : parts(value).some(([, part]) => isMethod(part))
  return Object.entries(message).some(
    ([name, value]) =>
      (name.toLowerCase() === 'method' && isMethod(value)) || (name === 'params' && holdsAddress(value, true)),
  )
}

function holdsAddress(value: unknown, isAddress: boolean): boolean {
  if (typeof value === 'string') return isAddress && isSkillAddress(value)
  if (Array.isArray(value)) return value.some((part) => holdsAddress(part, isAddress))
  return parts(value).some(([name, part]) => name !== 'arguments' && holdsAddress(part, name === 'uri'))
}

const parts = (value: unknown) => Object.entries(typeof value === 'object' && value !== null ? value : {})

test('headers that say what is in the message count as it does', () => {
  const packed = (text: string) => `=?base64?${Buffer.from(text).toString('base64')}?=`
  for (const headers of [
    { 'mcp-method': 'skills/list' },
    { 'mcp-method': 'ping, Skills/list' },
    { 'mcp-method': packed('skills/list') },
    { 'mcp-method': 'resources/read', 'mcp-name': 'skill://a' },
    { 'mcp-method': 'resources/read', 'mcp-name': packed('skill://a') },
    { 'mcp-name': ['a', 'SKILL:a'] },
  ])
    expect([headers, headAsksForSkills(headers)]).toEqual([headers, true])
  for (const headers of [
    {},
    { 'mcp-method': 'tools/call', 'mcp-name': 'skill:a' },
    { 'mcp-method': 'resources/read', 'mcp-name': 'file:///a' },
    { 'mcp-session-id': 'skills/list' },
  ])
    expect([headers, headAsksForSkills(headers)]).toEqual([headers, false])
})

test.each([
  [{ 'content-encoding': 'gzip' }, true],
  [{ 'content-encoding': 'identity, gzip' }, true],
  [{ 'content-encoding': ' Identity' }, false],
  [{ 'content-type': 'application/json' }, false],
  [{ 'content-type': 'Application/JSON; charset="UTF-8"' }, false],
  [{ 'content-type': 'application/json; charset=utf-16le' }, true],
  [{ 'content-type': 'application/json; charset=utf-8; charset=utf-16' }, true],
  [{ 'content-type': 'application/x-www-form-urlencoded' }, true],
  [{ 'content-type': 'multipart/form-data; boundary=x' }, true],
  [{ 'content-type': '' }, true],
  [{}, false],
])('a server could read other bytes by %j: %s', (headers, could) => {
  expect(whyReadOtherwise(headers) !== null).toBe(could)
})
