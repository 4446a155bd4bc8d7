// Each measurement works, whatever its figures.

import { execFile, execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { isLong } from '../../kit/forms.ts'

const root = join(import.meta.dirname, '../../..')
const bench = ['--disable-warning=ExperimentalWarning', join(root, 'scripts/benches/main.ts')]
const listed = execFileSync(process.execPath, [...bench, '--list'], { encoding: 'utf8' })
const names = listed.split('\n').flatMap((line) => /^\S+/.exec(line) ?? [])

/** What they need beside this checkout. */
const needing: Readonly<Record<string, string>> = {
  growth: 'the project of Vitest in which it measures',
  field: 'an installation from nothing',
  harness: 'a harness that is installed',
  'harness-memory': 'the last release',
  sandbox: 'an engine for containers',
  'sandbox-clone': 'an engine for containers',
}
/** Those that take a few seconds, so that the short form has them. */
const quick = ['wall', 'host-start', 'change-sets', 'mcp-door', 'pty-capture', 'repo-install']

interface Measured {
  results: { name: string; ratio: number | null; ours: { median: number | null } }[]
  failed: { bench: string; message: string }[]
}

describe('a short round of each bench ends with figures', () => {
  test.each(names.filter((name) => (isLong ? needing[name] === undefined : quick.includes(name))))(
    '%s',
    { timeout: 300_000 },
    async (name) => {
      const options = { cwd: root, maxBuffer: 2 ** 24 }
      const { stdout } = await promisify(execFile)(process.execPath, [...bench, name, '--short', '--json'], options)
      const { results, failed } = JSON.parse(stdout) as Measured
      expect(failed).toEqual([])
      expect(results.length).toBeGreaterThan(0)
      // What is no number is null in JSON.
      for (const result of results)
        expect(result).toMatchObject({ ratio: expect.any(Number), ours: { median: expect.any(Number) } })
    },
  )

  test('and the lists here name those that there are', () => {
    expect(names).toEqual(expect.arrayContaining([...Object.keys(needing), ...quick]))
  })
})
