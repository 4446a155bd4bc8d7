import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { openApiDocument } from '../../../control-plane/http/openapi.ts'
import { errorsOf } from '../../../control-plane/http/route-errors.ts'
import { contract } from '../../../shared/api/index.ts'

interface Operation {
  operationId: string
  security: unknown[]
  parameters: { name: string; in: string }[]
  responses: Record<string, { description: string }>
}
const document = openApiDocument(contract, 'http://127.0.0.1:4400')
const paths = document['paths'] as Record<string, Record<string, Operation>>

test('the OpenAPI document passes the linter', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-openapi-'))
  const file = join(folder, 'openapi.json')
  writeFileSync(file, JSON.stringify(document))
  const cli = join(import.meta.dirname, '../../../node_modules/.bin/redocly')
  const { exitCode, stdout, stderr } = await execa(cli, ['lint', file, '--extends', 'recommended'], {
    env: { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
    reject: false,
  })
  rmSync(folder, { recursive: true })
  expect([exitCode, stdout + stderr]).toEqual([0, expect.stringContaining('valid')])
})

test('it has every route, alias, parameter and status, and names each code', () => {
  for (const route of contract) {
    for (const path of [route.path, ...route.aliases]) {
      const operation = paths[route.base + path]?.[route.method.toLowerCase()]
      expect([path, operation?.operationId]).toEqual([path, route.aliasIds[path] ?? route.id])
      if (operation === undefined) continue
      const names = operation.parameters.map(({ name }) => name)
      expect(names).toEqual(
        expect.arrayContaining([...Object.keys(route.params.shape), ...Object.keys(route.query.shape)]),
      )
      expect(names.includes('Idempotency-Key')).toBe(route.idempotency !== 'none')
      expect(operation.security).toHaveLength(route.callers === 'none' ? 0 : 2)
      const good = [String(route.status), ...Object.keys(route.otherReplies)]
      expect(Object.keys(operation.responses)).toEqual(expect.arrayContaining(good))
      for (const [status, { codes }] of errorsOf(route)) {
        for (const code of codes) expect(operation.responses[status]?.description).toContain(`\`${code}\``)
      }
    }
  }
})
