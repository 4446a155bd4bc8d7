import { acpAdapter } from '../../device-manager/harness/acp/adapter.ts'
import { compileCache } from './compile-cache.ts'
import { isLong } from './forms.ts'
import { driveHarness, harnessMachine, type DrivenRun, type DriveOptions, type HarnessMachine } from './real-harness.ts'

/**
 * In the short form it does not start itself once more with a larger heap, which takes 2 s of processor time, and its engine does not
 * optimize WebAssembly: with the first shell command it begins to compile the one large function of a parser, which takes 9 s, and
 * for which the end of the program waits. That can only be said on the command line, so the program is started as its launcher does.
 */
const settings = isLong ? '' : 'QWEN_CODE_NO_RELAUNCH=1 '
const program = isLong
  ? 'qwen'
  : 'node --liftoff-only --expose-gc "$(dirname "$(readlink -f "$(command -v qwen)")")/cli.js"'

/** A shell line that starts qwen as an agent that speaks ACP, asks before it acts, and knows the scripted model's server. */
export const qwenCommand = (baseUrl: string): string =>
  `${settings}NODE_COMPILE_CACHE='${compileCache.NODE_COMPILE_CACHE}' ANTHROPIC_API_KEY=dummy ANTHROPIC_BASE_URL='${baseUrl}' ANTHROPIC_MODEL=stub-model ` +
  `exec ${program} --acp --auth-type anthropic --approval-mode default`

export const acpMachine = (binDir: string): HarnessMachine =>
  harnessMachine('svc-acp-', () => ({ PATH: `${binDir}:${process.env['PATH'] ?? ''}` }))

export const driveAcp = (options: Omit<DriveOptions, 'adapter' | 'version'>): DrivenRun =>
  driveHarness({ ...options, adapter: acpAdapter, version: '1' })

export const qwenShell = (command: string) =>
  ({ name: 'run_shell_command', input: { command, is_background: false } }) as const
