import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { claudeAdapter } from '../../device-manager/harness/claude/adapter.ts'
import { driveHarness, harnessMachine, type DrivenRun, type DriveOptions, type HarnessMachine } from './real-harness.ts'

export function claudeMachine(options: {
  binDir: string
  baseUrl: string
  apiKey: string | null
  /** A subscriber's. */
  oauthToken?: string
}): HarnessMachine {
  return harnessMachine('svc-claude-', (_root, home) => ({
    PATH: `${options.binDir}:${process.env['PATH'] ?? ''}`,
    CLAUDE_CONFIG_DIR: join(home, '.claude'),
    ANTHROPIC_BASE_URL: options.baseUrl,
    ...(options.apiKey !== null && { ANTHROPIC_API_KEY: options.apiKey }),
    ...(options.oauthToken !== undefined && { CLAUDE_CODE_OAUTH_TOKEN: options.oauthToken }),
  }))
}

export const driveClaude = (options: Omit<DriveOptions, 'adapter'>): DrivenRun =>
  driveHarness({ ...options, adapter: claudeAdapter })

/**
 * As on a person's machine: claude has been there before, since a folder that it makes tells the device of a sign-in to look for, and
 * is found and signed in by the login shell's profile, by a key or as a subscriber.
 */
export function signInClaude(
  homeDir: string,
  { binDir, modelUrl, isSubscriber = false }: { binDir: string; modelUrl: string; isSubscriber?: boolean },
): void {
  const configDir = join(homeDir, '.claude')
  mkdirSync(configDir, { recursive: true })
  const profile = [
    `export PATH='${binDir}':"$PATH"`,
    `export ANTHROPIC_BASE_URL='${modelUrl}'`,
    `export ${isSubscriber ? 'CLAUDE_CODE_OAUTH_TOKEN' : 'ANTHROPIC_API_KEY'}=dummy`,
    `export CLAUDE_CONFIG_DIR='${configDir}'`,
  ]
  writeFileSync(join(homeDir, '.profile'), `${profile.join('\n')}\n`)
}
