import { expect, it } from 'vitest'
import { stateFromLaunchctl as launchdState } from '../../shared/lib/launchd-words.ts'
import { pauseAfter } from './restart-pace.ts'
import { stateFromSystemctl as systemdState } from '../../shared/lib/unit-words.ts'

const shown = (lines: Record<string, string>) =>
  Object.entries({ LoadState: 'loaded', UnitFileState: 'enabled', MainPID: '0', ...lines })
    .map(([name, value]) => `${name}=${value}`)
    .join('\n')

it.each([
  ['at work', { ActiveState: 'active', MainPID: '77' }, { running: true, failed: null, pid: 77 }],
  ['between two starts', { ActiveState: 'activating', SubState: 'auto-restart' }, { running: false, failed: null }],
  [
    'given up',
    { ActiveState: 'failed', Result: 'exit-code', ExecMainStatus: '78' },
    { running: false, failed: 'exit-code, status 78' },
  ],
  [
    'unknown',
    { LoadState: 'not-found', ActiveState: 'inactive', UnitFileState: '' },
    { loaded: false, enabled: false },
  ],
  ['no answer at all', { LoadState: '', ActiveState: '' }, { loaded: false, running: false }],
])('reads a systemd unit that is %s', (_, lines, state) => {
  expect(systemdState(shown(lines))).toMatchObject(state)
})

it.each([
  [
    'at work',
    '\tstate = running\n\tprogram = /usr/bin/node\n\tpid = 77\n\tlast exit code = 1\n',
    { pid: 77, failed: null },
  ],
  ['about to be started again', '\tstate = spawn scheduled\n\tlast exit code = 70\n', { running: false, failed: null }],
  ['left down', '\tstate = not running\n\tlast exit code = 0\n', { running: false, failed: 'by itself, status 0' }],
  ['new', '\tstate = not running\n\tlast exit code = (never exited)\n', { loaded: true, failed: null }],
])('reads a launchd job that is %s', (_, printed, state) => {
  expect(launchdState(printed)).toMatchObject(state)
})

it('pauses longer after each crash, up to five minutes', () => {
  expect([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 90].map(pauseAfter)).toEqual([
    0, 0, 0, 10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000, 300_000,
  ])
})
