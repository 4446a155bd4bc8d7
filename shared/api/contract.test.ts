import { idFrom, type RunId } from '../lib/ids.ts'
import { expect, test } from 'vitest'
import type { z } from 'zod'
import { errorCodes } from './error-codes.ts'
import { ApiError, errorTypeOf } from './errors.ts'
import { flagsOf } from './flags.ts'
import { contract } from './index.ts'
import { parseRunEventId, runEventId } from './run-events.ts'
import { cpuMsOf } from '../../test/kit/cpu-time.ts'

const commands = contract.flatMap((route) => route.commands.map((command) => ({ route, command })))

test('no two routes have the same id, or the same method and path', () => {
  const ids = contract.map(({ id }) => id)
  expect(new Set(ids).size).toBe(ids.length)
  const places = contract.flatMap(({ method, base, path, aliases }) =>
    [path, ...aliases].map((one) => `${method} ${base}${one.replaceAll(/\{\w+\}/g, '{}')}`),
  )
  expect(new Set(places).size).toBe(places.length)
})

test('the parameters of each path are those of its schema', () => {
  for (const { path, aliases, params } of contract) {
    for (const one of [path, ...aliases]) {
      expect([...one.matchAll(/\{(\w+)\}/g)].map((match) => match[1])).toEqual(Object.keys(params.shape))
    }
  }
})

test('no two commands have the same words, and each example begins with its own', () => {
  const words = commands.map(({ command }) => command.command)
  expect(new Set(words).size).toBe(words.length)
  for (const { command } of commands) expect(command.example.startsWith(`svc ${command.command}`)).toBe(true)
})

test('every flag has a target, or is read by its command, and says what it is', () => {
  for (const { route, command } of commands) {
    const flags = flagsOf(route, command)
    const names = flags.flatMap(({ name, aliases = [] }) => [name, ...aliases])
    expect(new Set(names).size).toBe(names.length)
    for (const flag of flags) {
      expect([command.command, flag.name, flag.description]).toEqual([
        command.command,
        flag.name,
        expect.stringMatching(/./),
      ])
      const isRead = flag.target !== null || flag.dropped === true || command.flow === true
      expect([command.command, flag.name, isRead]).toEqual([command.command, flag.name, true])
    }
  }
})

test('what a command must send can be sent: required parameters, query and body keys have a flag or a positional', () => {
  for (const { route, command } of commands) {
    const targets = new Set([
      ...(command.positionals ?? []).map(({ target }) => target),
      ...flagsOf(route, command).map(({ target }) => target),
    ])
    for (const key of Object.keys(route.params.shape)) expect(targets).toContain(`params.${key}`)
  }
})

test('the type of an error follows from its status', () => {
  expect(errorTypeOf('run.not_retriable', 409)).toBe('conflict_error')
  expect(errorTypeOf('run.not_retriable', 503)).toBe('api_error')
  expect(errorTypeOf('diff_unavailable', 502)).toBe('api_error')
  expect(errorTypeOf('too_large', 413)).toBe('invalid_request_error')
  expect(errorTypeOf('idempotency_invalid_key', 400)).toBe('invalid_request_error')
  expect(errorTypeOf('idempotency_key_reused', 409)).toBe('idempotency_error')
  expect(() => new ApiError('run.cancel_forbidden', { status: 404 })).toThrow('never answered with 404')
  for (const { message } of Object.values(errorCodes)) expect(message).toMatch(/^[A-Z`].*\.$/)
})

test("an event's id tells fence and seq, within its own run only", () => {
  const run = idFrom<RunId>('run_3nB7cW1yHsD5jK9q')
  const seen = new Set<string>()
  for (const fence of [1, 2, 255, 2 ** 31]) {
    for (const seq of [1, 2, 16, 2 ** 40]) {
      const id = runEventId(run, fence, seq)
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/)
      expect(parseRunEventId(run, id)).toEqual({ fence, seq })
      expect(parseRunEventId(idFrom('run_3nB7cW1yHsD5jK9z'), id)).toBeNull()
      seen.add(id)
    }
  }
  expect(seen.size).toBe(16)
  expect(parseRunEventId(run, '00000000-0000-4000-8000-000000000000')).toBeNull()
})

/** Finds the schemas of texts within a schema; each is checked on its whole text, also when the text is too long. */
function textsOf(schema: unknown, seen = new Set<unknown>()): z.ZodType[] {
  if (typeof schema !== 'object' || schema === null || seen.has(schema)) return []
  seen.add(schema)
  const { def } = schema as { def?: Record<string, unknown> }
  if (def === undefined) return Object.values(schema).flatMap((each) => textsOf(each, seen))
  const inner = ['innerType', 'element', 'keyType', 'valueType', 'in', 'out', 'left', 'right', 'options', 'shape']
  const found = inner.flatMap((key) => textsOf(def[key], seen))
  return def['type'] === 'string' ? [schema as z.ZodType, ...found] : found
}

test('no text of a body takes long to check, whatever it is made of', () => {
  const long = (piece: string, begin = '') => begin + piece.repeat(Math.ceil(50_000 / piece.length))
  const pieces = ['\u0315\u0300', ' a', ' ', '-', '/a', 'a.', '\\', '漢', '1.', 'a']
  const texts = pieces
    .map((piece) => long(piece, 'a'))
    .concat(long(':', 'a://'), long('a:@', 'https://'), long('; a="a"', 'a/a'), long('0', '2026-01-01T00:00:00.'))
  const slow = contract.flatMap((route) =>
    textsOf(route.body).flatMap((schema) =>
      texts.flatMap((text) =>
        cpuMsOf(() => schema.safeParse(text)) > 250 ? [`${route.id}: ${text.slice(0, 30)}`] : [],
      ),
    ),
  )
  expect(slow).toEqual([])
})
