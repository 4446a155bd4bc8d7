import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { opencodeAdapter } from '../../device-manager/harness/opencode/adapter.ts'
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
 * Beside it a registry that nothing answers at: what opencode would install into the person's folder stays away. It has been there
 * before: the folder that it makes for its data tells a device of a sign-in to look for.
 */
export function writeOpencodeConfig(home: string, config: string): void {
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
    writeOpencodeConfig(home, opencodeConfig(options.baseUrl, options.config))
    return { PATH: `${options.binDir}:${process.env['PATH'] ?? ''}`, ...opencodeEngine }
  })
}

export const driveOpencode = (options: Omit<DriveOptions, 'adapter' | 'version'>): DrivenRun =>
  driveHarness({ ...options, adapter: opencodeAdapter, version: '1.18.33' })
