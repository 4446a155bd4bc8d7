import { describe, expect, it } from 'vitest'
import { isSurelyOlder, versionIn } from './version.ts'

describe('what a program says of its version', () => {
  it.each([
    ['codex-cli 0.20.0', true],
    ['codex-cli 0.99.9', true],
    ['codex-cli 0.100.0', false],
    ['codex-cli 0.100.1', false],
    ['codex-cli 0.1000.0', false],
    ['1.0.0', false],
    ['v0.20.0', true],
    ['v0.101.0', false],
    ['0.20.0 (Codex), built 2026.01.02', false],
    // A pre-release of the lowest version may lack something. Nobody can tell.
    ['0.100.0-alpha.3', false],
    ['0.99.0-alpha.3', true],
    ['0.20.0+build.7', true],
    // A build from sources.
    ['codex-cli 0.0.0', false],
    ['0.0.0-main-202611290046', false],
    ['dev', false],
    ['', false],
    ['0.20', false],
    ['99999999.1.1', false],
    // A program around it says its own version, too.
    ['shim 0.14.0\ncodex-cli 0.169.0', false],
    ['shim 0.14.0\ncodex-cli 0.20.0', true],
    ['\u001b[1m0.20.0\u001b[0m', false],
  ])('%j is surely older than 0.100.0: %s', (text, isOlder) => {
    expect(isSurelyOlder(text, '0.100.0')).toBe(isOlder)
  })

  it('is found behind a v', () => {
    expect(versionIn('v1.18.33\n')).toBe('1.18.33')
  })
})
