import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineRoute } from '../../shared/api/route.ts'
import type { ImplementedRoute } from './implement.ts'
import type { Kernel } from './kernel.ts'
import { createRouteTable } from './app.ts'

function route(method: 'GET' | 'POST' | 'PATCH', path: string, aliases: Record<string, string> = {}): ImplementedRoute {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map((match) => [match[1]!, z.string()] as const)
  const params = z.object(Object.fromEntries(names))
  const endpoint = `${method} ${path}`
  const described = { id: endpoint, endpoint, aliases, summary: path, params, callers: 'none' as const }
  return { route: defineRoute(described as never), handler: () => Promise.resolve() }
}

const table = createRouteTable(
  [
    route('GET', '/things/{id}'),
    route('GET', '/things/stats'),
    route('GET', '/things', { '/stuff': 'GET /stuff' }),
    route('POST', '/things'),
    route('PATCH', '/things/{id}/parts/{part}'),
    route('GET', '/things/{id}/parts/first'),
  ],
  {} as Kernel,
)
const find = (method: string, path: string) => table.find(method, `/api/v1${path}`)
const params = (method: string, path: string) => find(method, path)?.params

test('a path is matched word by word, fixed words first, by either of its names', () => {
  expect(find('GET', '/things')?.serve).toBe(find('GET', '/stuff')?.serve)
  expect(find('GET', '/things/stats')?.serve).not.toBe(find('GET', '/things/other')?.serve)
  expect(params('GET', '/things/stats')).toEqual({})
  expect(params('GET', '/things/x')).toEqual({ id: 'x' })
  expect(params('PATCH', '/things/x/parts/first')).toEqual({ id: 'x', part: 'first' })
  expect(params('GET', '/things/x/parts/first')).toEqual({ id: 'x' })
})

test('HEAD is answered where GET is, a slash at the end makes no difference', () => {
  expect(find('HEAD', '/things')?.serve).toBe(find('GET', '/things')?.serve)
  expect(find('GET', '/things/')?.serve).toBe(find('GET', '/things')?.serve)
  expect(params('GET', '/things/x/')).toEqual({ id: 'x' })
})

test('what is not a path of the contract is not found', () => {
  const paths = ['/thing', '/THINGS', '/things//', '/things//parts/first', '/things/x/y', '/things/x/parts/first/z', '']
  expect(paths.map((path) => find('GET', path))).toEqual(paths.map(() => null))
  for (const path of ['/', '', '*', '/things', '/api', '/v1/things', '//api/v1/things', '/api/v2/things'])
    expect(table.find('GET', path)).toBeNull()
})

test('parameters are decoded when they can be', () => {
  expect(params('GET', '/things/%40me%2Fx')).toEqual({ id: '@me/x' })
  expect(params('GET', '/things/%E0%A4%A')).toEqual({ id: '%E0%A4%A' })
  expect(params('GET', '/things/constructor')).toEqual({ id: 'constructor' })
})

test('the methods of a path are told', () => {
  expect(table.allowed('/api/v1/things')).toEqual(['GET', 'HEAD', 'POST'])
  expect(table.allowed('/api/v1/things/x/parts/first')).toEqual(['GET', 'HEAD', 'PATCH'])
  expect(table.allowed('/api/v1/nothing')).toEqual([])
})
