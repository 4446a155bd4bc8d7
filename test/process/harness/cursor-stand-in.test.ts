import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { cursorAdapter } from '../../../device-manager/harness/cursor/adapter.ts'
import type { RunSpec } from '../../../shared/runs/spec.ts'
import { isLong } from '../../kit/forms.ts'
import { killTheDecider } from '../../kit/killed-decider.ts'
import { driveHarness, harnessMachine, type HarnessMachine } from '../../kit/real-harness.ts'

// Drives a stand-in for Cursor as a run host does: the real one cannot be had without an account.

let machine: HarnessMachine
beforeEach(() => {
  machine = harnessMachine('svc-cursor-', (root) => {
    const bin = join(root, 'bin')
    const program = join(import.meta.dirname, '../../kit/stand-in-cursor.mjs')
    mkdirSync(bin)
    writeFileSync(join(bin, 'cursor-agent'), `#!/bin/sh\nexec '${process.execPath}' '${program}' "$@"\n`, {
      mode: 0o755,
    })
    return { PATH: `${bin}:${process.env['PATH'] ?? ''}` }
  })
})
afterEach(() => machine.remove())

const version = '2026.07.20-standin'
const modes = ['ask', 'strict', 'full'] as const
const permissions = (defaultMode: (typeof modes)[number], deny: string[] = []): RunSpec['permissions'] => ({
  allow: [],
  ask: [],
  deny,
  defaultMode,
})
const isMade = () => existsSync(join(machine.cwd, 'hello.txt'))

// In the short form harness-all.test.ts kills the run host of this stand-in while its call waits.
if (isLong)
  it.each<[string, RunSpec['permissions']]>([
    ['ask', permissions('ask')],
    ['full with rules', permissions('full', ['Bash(rm *)'])],
  ])(
    'a call that waits when the process that decides is killed is never made, and the program ends: %s',
    async (_, rules) => {
      await killTheDecider(machine, { version, spec: { harness: 'cursor', permissions: rules } })
      expect(isMade()).toBe(false)
    },
  )

it('the same call is made when it is allowed', async () => {
  const run = driveHarness({ machine, adapter: cursorAdapter, version, spec: { permissions: permissions('ask') } })
  await run.event(({ kind }) => kind === 'result')
  expect(run.asks).toMatchObject([{ name: 'Bash', input: { command: 'echo hello > hello.txt' } }])
  expect(isMade()).toBe(true)
})

it('where nothing is asked, the mode strict does not start it', () => {
  const spec = { permissions: permissions('strict') }
  expect(() => driveHarness({ machine, adapter: cursorAdapter, version, spec })).toThrow(/strict cannot hold/)
  expect(machine.running.size).toBe(0)
})
