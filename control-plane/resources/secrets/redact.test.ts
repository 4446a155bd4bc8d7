import { generateKeyPairSync } from 'node:crypto'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { Redactor } from '../../../shared/lib/redact.ts'
import { censored } from './redact.ts'
import { cpuMsOf } from '../../../test/kit/cpu-time.ts'

const keyOf = () =>
  generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  }).privateKey

test('each form of a long value is taken out, wherever it stands in the body, and nothing else', () => {
  const [key, other] = [keyOf(), keyOf()]
  const secrets = [
    { name: 'KEY', value: key },
    { name: 'OTHER', value: other },
  ]
  const body = {
    plain: `see ${key}!`,
    list: [JSON.stringify(key), encodeURIComponent(key.trim()), Buffer.from(key.trim()).toString('hex')],
    [Buffer.from(`x${key.trim()}`).toString('base64')]: 1,
    patch: `+${key.trim().replaceAll('\n', '\n+')}`,
    wrapped: key.trim().replaceAll('\n', '\r\n  '),
    'begins alike': key.slice(0, 40),
  }
  const text = JSON.stringify(censored(body, secrets))
  expect(text).toBe(JSON.stringify(new Redactor(secrets).redactJson(body)))
  expect(text.match(/\[redacted:KEY\]/g)).toHaveLength(7)
  expect(text).toContain('begins alike')
  const numbered = { plain: key.replaceAll('\n', '\n 1 ') }
  expect(JSON.stringify(censored(numbered, secrets)).match(/\[redacted:KEY\]/g)).toHaveLength(3)
  const without = { plain: 'nothing' }
  expect(censored(without, secrets)).toBe(without)
})

test('what pieces of values find is what whole values find', () => {
  const unit = fc.constantFrom('a', 'b', '/', '"', '\n', ' ', 'é', '😀', '\u001b', '%')
  const value = fc.string({ unit, minLength: 6, maxLength: 120 })
  const wrapped = (text: string) => text.replace(/.{20}/gsu, '$&\n')
  const writers = [
    (text: string) => text,
    (text: string) => JSON.stringify(text),
    (text: string) => encodeURIComponent(text.toWellFormed()),
    (text: string) => encodeURI(text.toWellFormed()),
    (text: string) => Buffer.from(text).toString('base64'),
    (text: string) => wrapped(Buffer.from(`xy${text}`).toString('base64')),
    (text: string) => Buffer.from(text).toString('hex'),
  ]
  fc.assert(
    fc.property(fc.array(value, { minLength: 1, maxLength: 4 }), fc.nat({ max: writers.length - 1 }), (values, how) => {
      const secrets = values.map((each, at) => ({ name: `S${at}`, value: each }))
      const body = values.map((each) => `before ${writers[how]!(each.trim())} after`)
      expect(censored(body, secrets)).toEqual(new Redactor(secrets).redactJson(body))
    }),
    { numRuns: 120 },
  )
})

test('a body is looked through in time, however many values there are and however long', () => {
  const secrets = Array.from({ length: 200 }, (_, at) => ({
    name: `S${at}`,
    value: `${at}${keyOf()}`.repeat(40).slice(0, 10_000).trim(),
  }))
  const body = { body: 'Done: see the notes.' }
  // The tables of all values whole take ten seconds.
  expect(cpuMsOf(() => expect(censored(body, secrets)).toBe(body))).toBeLessThan(1_000)
  const all = { body: secrets.map(({ value }) => value).join('\n') }
  expect(() => censored(all, secrets)).toThrow(/holds the values of many secrets/)
  const one = { body: secrets[7]!.value }
  expect(censored(one, secrets)).toEqual({ body: '[redacted:S7]' })
})

test('of values that overlap in a body nothing is left', () => {
  const both = Array.from({ length: 20 }, (_, at) => `part-${at}-of-it;`).join('')
  const secrets = [
    { name: 'A', value: both.slice(0, 150) },
    { name: 'B', value: both.slice(20, 170) },
    { name: 'C', value: both.slice(40, 190) },
  ]
  const body = { body: `see ${both.slice(0, 190)}!` }
  expect(censored(body, secrets)).toEqual(new Redactor(secrets).redactJson(body))
  expect(JSON.stringify(censored(body, secrets))).not.toContain('part-')
})
