import { acpAdapter } from '../../device-manager/harness/acp/adapter.ts'
import { compileCache } from './compile-cache.ts'
import { isLong } from './forms.ts'
import { driveHarness, harnessMachine, type DrivenRun, type DriveOptions, type HarnessMachine } from './real-harness.ts'

/** In the short form it does not start itself once more with a larger heap: 2 s of processor time. */
const starts = isLong ? '' : 'QWEN_CODE_NO_RELAUNCH=1 '

/** A shell line that starts qwen as an agent that speaks ACP, asks before it acts, and knows the scripted model's server. */
export const qwenCommand = (baseUrl: string): string =>
  `${starts}NODE_COMPILE_CACHE='${compileCache.NODE_COMPILE_CACHE}' ANTHROPIC_API_KEY=dummy ANTHROPIC_BASE_URL='${baseUrl}' ANTHROPIC_MODEL=stub-model ` +
  'exec qwen --acp --auth-type anthropic --approval-mode default'

export const acpMachine = (binDir: string): HarnessMachine =>
  harnessMachine('svc-acp-', () => ({ PATH: `${binDir}:${process.env['PATH'] ?? ''}` }))

export const driveAcp = (options: Omit<DriveOptions, 'adapter' | 'version'>): DrivenRun =>
  driveHarness({ ...options, adapter: acpAdapter, version: '1' })

export const qwenShell = (command: string) =>
  ({ name: 'run_shell_command', input: { command, is_background: false } }) as const
