import { chmodSync, copyFileSync, mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { TestDevice } from './host-client.ts'

/** What the stand-in for claude plays unless it is told another one. */
export const recording = resolve(import.meta.dirname, '../../fixtures/harness/claude/cbhook-ask.jsonl')

/** Puts the stand-in for claude into a folder of the device, and returns that folder, which is to stand on the PATH. */
export function placeClaude(device: TestDevice): string {
  const bin = join(device.stateDir, 'bin')
  mkdirSync(bin)
  copyFileSync(join(import.meta.dirname, 'claude-player.mjs'), join(bin, 'claude'))
  chmodSync(join(bin, 'claude'), 0o755)
  return bin
}
