import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { variableNames } from '../settings/variables.ts'

interface Service {
  environment: Record<string, string | null>
  volumes: (string | { source: string; target: string })[]
}
const text = readFileSync(join(import.meta.dirname, 'compose.yaml'), 'utf8')
const { services } = parse(text) as { services: Record<'server' | 'postgres', Service> }

test('an operator can set every variable that a server on one machine has', () => {
  const ofClusters = /^SVC_SANDBOX_(?:NAMESPACE|BROKER_|STORAGE_CLASS|CLUSTER_)/
  const ofDevelopers = 'SVC_CHECK_REPLIES'
  const needed = variableNames.filter((name) => !ofClusters.test(name) && name !== ofDevelopers)
  expect(Object.keys(services.server.environment).toSorted()).toEqual(needed.toSorted())
})

test('the data folder has one name on the machine and in the container', () => {
  const folder = services.server.environment['SVC_DATA_DIR']
  expect(services.server.volumes).toContainEqual({ type: 'bind', source: folder, target: folder })
})

test('no secret has a default, and without cloud runs the engine is out of reach', () => {
  for (const [, name] of text.matchAll(/\$\{(\w+)(?::-|-)/g)) expect(name).not.toMatch(/PASSWORD|KEY|TOKEN|SECRET/)
  expect(text).toContain('${SVC_SANDBOX:-none}')
  expect(text).toContain('${SVC_SANDBOX_SOCKET:-/dev/null}')
})
