import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { opencodeAdapter } from '../../device-manager/harness/opencode/adapter.ts'
import { isLong } from './forms.ts'
import { driveHarness, harnessMachine, type DrivenRun, type DriveOptions, type HarnessMachine } from './real-harness.ts'

/** Its engine takes a quarter less of a processor for a start, which is over before the last stage of its compiler pays. */
export const opencodeEngine = { BUN_JSC_useDFGJIT: '0' }

/** A person's settings: a provider of their own. */
export function opencodeConfig(baseUrl: string, more: Record<string, unknown> = {}): string {
  const model = {
    name: 'Stub',
    tool_call: true,
    reasoning: true,
    limit: { context: 100_000, output: 4_000 },
    cost: { input: 1, output: 2 },
  }
  const stub = {
    npm: '@ai-sdk/anthropic',
    options: { baseURL: `${baseUrl}/v1`, apiKey: 'dummy' },
    models: { 'stub-model': model, 'second-model': { ...model, name: 'Second' } },
  }
  return JSON.stringify({
    model: 'stub/stub-model',
    small_model: 'stub/stub-model',
    enabled_providers: ['stub'],
    provider: { stub },
    ...more,
  })
}

/**
 * In the short form the list of all models that opencode keeps is empty: of the one within itself it makes thousands of objects
 * at each start, which takes a third of a run's processor time.
 */
export const opencodeModels = isLong ? null : '{}'

/**
 * Beside it a registry that nothing answers at: what opencode would install into the person's folder stays away. It has been there
 * before: the folder that it makes for its data tells a device of a sign-in to look for. `models`: the list that it has kept; null:
 * none, so it takes the one within itself.
 */
export function writeOpencodeConfig(
  home: string,
  config: string,
  { models = null }: { models?: string | null } = {},
): void {
  const cache = join(home, '.cache', 'opencode')
  const list = join(cache, 'models.json')
  if (models === null) rmSync(list, { force: true })
  else {
    mkdirSync(cache, { recursive: true })
    writeFileSync(list, models)
  }
  mkdirSync(join(home, '.config', 'opencode'), { recursive: true })
  mkdirSync(join(home, '.local', 'share', 'opencode'), { recursive: true })
  writeFileSync(join(home, '.config', 'opencode', 'opencode.json'), config)
  writeFileSync(join(home, '.npmrc'), 'registry=http://127.0.0.1:9/\n')
}

export function opencodeMachine(options: {
  binDir: string
  baseUrl: string
  config?: Record<string, unknown>
}): HarnessMachine {
  return harnessMachine('svc-opencode-', (_root, home) => {
    writeOpencodeConfig(home, opencodeConfig(options.baseUrl, options.config), { models: opencodeModels })
    return { PATH: `${options.binDir}:${process.env['PATH'] ?? ''}`, ...opencodeEngine }
  })
}

export const driveOpencode = (options: Omit<DriveOptions, 'adapter' | 'version'>): DrivenRun =>
  driveHarness({ ...options, adapter: opencodeAdapter, version: '1.18.33' })
