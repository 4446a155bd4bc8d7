import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { ConfigError } from '../process/config-error.ts'
import { createCatalog, loadCatalog, modelEntry, modelsFile } from './catalog.ts'
import builtIn from './models.json' with { type: 'json' }

const folders: string[] = []
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true })
})

function fileWith(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-models-'))
  folders.push(folder)
  const file = join(folder, 'models.json')
  writeFileSync(file, text)
  return file
}
const entry = (id: string, rest: object = {}) =>
  modelEntry.parse({ id, harness: 'opencode', efforts: [], price: null, ...rest })

describe('the catalog of models', () => {
  it('names each model once', () => {
    const { models } = modelsFile.parse(builtIn)
    const names = models.flatMap((model) => [model.id, ...model.aliases])
    expect(new Set(names).size).toBe(names.length)
    expect(names.length).toBeGreaterThan(20)
  })

  it('finds a model by its other spellings', () => {
    const catalog = loadCatalog(null)
    for (const spelling of [
      'claude-opus-4-5',
      'Claude-Opus-4-5',
      'claude-opus-4-5-20251101',
      'claude-opus-4-5@20251101',
      'anthropic/claude-opus-4-5',
      'claude-opus-4-5[1m]',
      'claude-opus-4-5-20251101[1m]',
    ])
      expect(catalog.find(spelling)?.id).toBe('claude-opus-4-5')
    expect(catalog.find('haiku')?.id).toBe('claude-haiku-5-5')
    expect(catalog.find('gpt-5-2025-08-07')?.id).toBe('gpt-5')
    for (const unknown of ['gpt-99', '', 'claude', '20251101', '[1m]']) expect(catalog.find(unknown)).toBeNull()
  })

  it('lists the operator’s models before its own', () => {
    const price = { input: '1', output: '2', cacheRead: '0', cacheWrite: '0.000000001' }
    const file = fileWith(
      JSON.stringify({
        models: [
          { id: 'House/Model', harness: 'opencode', efforts: ['low'], price },
          { id: 'gpt-5', harness: 'opencode', efforts: [], price: null },
        ],
      }),
    )
    const catalog = loadCatalog(file)
    expect(catalog.find('house/model')).toMatchObject({ harness: 'opencode', price })
    expect(catalog.find('gpt-5')).toMatchObject({ harness: 'opencode', price: null })
    expect(catalog.find('gpt-5-mini')?.harness).toBe('codex')
  })

  it('an id takes precedence over an alias', () => {
    const catalog = createCatalog([entry('a'), entry('b', { aliases: ['a', 'c'] })])
    expect(catalog.find('a')?.id).toBe('a')
    expect(catalog.find('c')?.id).toBe('b')
  })

  it('names the problem in an invalid file', () => {
    for (const text of [
      'not json',
      '{}',
      '{"models":[{"id":"x"}]}',
      '{"models":[{"id":"x","harness":"claude","efforts":[],"price":{"input":0.1}}]}',
      '{"models":[],"more":1}',
    ])
      expect(() => loadCatalog(fileWith(text))).toThrow(ConfigError)
    expect(() => loadCatalog('/does/not/exist.json')).toThrow(/^SVC_MODELS_FILE: \/does\/not\/exist\.json cannot/)
  })
})
