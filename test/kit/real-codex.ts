import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { codexAdapter } from '../../device-manager/harness/codex/adapter.ts'
import { driveHarness, harnessMachine, type DrivenRun, type DriveOptions, type HarnessMachine } from './real-harness.ts'

/** A person's settings: a provider of their own, whose key is in the environment. */
export function codexConfig(baseUrl: string): string {
  return `model = "stub-model"
model_provider = "stub"
[model_providers.stub]
name = "stub"
base_url = "${baseUrl}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
`
}

export function codexMachine({ binDir, baseUrl }: { binDir: string; baseUrl: string }): HarnessMachine {
  return harnessMachine('svc-codex-', (_root, home) => {
    mkdirSync(join(home, '.codex'))
    writeFileSync(join(home, '.codex', 'config.toml'), codexConfig(baseUrl))
    return { PATH: `${binDir}:${process.env['PATH'] ?? ''}`, OPENAI_API_KEY: 'dummy' }
  })
}

export const driveCodex = (options: Omit<DriveOptions, 'adapter'>): DrivenRun =>
  driveHarness({ ...options, adapter: codexAdapter })
