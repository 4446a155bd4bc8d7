import { parse } from 'plist'
import { expect, test } from 'vitest'
import { valuesInUnit, wordsInUnit } from '../../shared/lib/unit-words.ts'
import { serverPlistText } from './server-plist.ts'
import { serverUnitText } from './server-unit.ts'

const unit = {
  node: '/opt/svc/bin/node',
  main: '/opt/100% $HOME/control-plane/main.js',
  path: '/usr/bin:/bin',
  dataDir: '/var/lib/svc',
  environmentFile: '/etc/svc/server.env',
  user: 'svc',
}

test('the unit starts the program with its own words, under the account, and leaves settings to their file', () => {
  const text = serverUnitText(unit)
  expect(wordsInUnit(valuesInUnit(text, 'ExecStart')[0]!.replaceAll('$$', '$'))).toEqual([
    unit.node,
    '--disable-warning=ExperimentalWarning',
    unit.main,
    'start',
  ])
  expect(valuesInUnit(text, 'Environment').flatMap(wordsInUnit)).toEqual([
    'PATH=/usr/bin:/bin',
    'SVC_DATA_DIR=/var/lib/svc',
  ])
  expect(valuesInUnit(text, 'EnvironmentFile')).toEqual(['-/etc/svc/server.env'])
  expect([...valuesInUnit(text, 'User'), ...valuesInUnit(text, 'RestartPreventExitStatus')]).toEqual(['svc', '78'])
})

test('home folders are hidden, unless the program lies in one; a service of a person has no account of its own', () => {
  expect(valuesInUnit(serverUnitText(unit), 'ProtectHome')).toEqual(['yes'])
  expect(valuesInUnit(serverUnitText({ ...unit, main: '/home/ann/svc/main.js' }), 'ProtectHome')).toEqual(['read-only'])
  const own = serverUnitText({ ...unit, user: null })
  expect([...valuesInUnit(own, 'User'), ...valuesInUnit(own, 'ProtectHome')]).toEqual([])
  expect(valuesInUnit(own, 'WantedBy')).toEqual(['default.target'])
})

test('the agent of launchd has the keys that it knows', () => {
  const of = { homeDir: '/Users/ann', outFile: '/Users/ann/data/server.out' }
  const { user: _, ...own } = {
    ...unit,
    environmentFile: '/Users/ann/.config/svc/server.env',
    dataDir: '/Users/ann/data',
  }
  expect(parse(serverPlistText({ ...own, user: null }, of))).toEqual({
    Label: 'dev.svc.server',
    ProgramArguments: [
      unit.node,
      '--disable-warning=ExperimentalWarning',
      '--env-file-if-exists=/Users/ann/.config/svc/server.env',
      unit.main,
      'start',
      '--service',
      'launchd',
    ],
    EnvironmentVariables: { PATH: unit.path, SVC_DATA_DIR: '/Users/ann/data', HOME: '/Users/ann' },
    WorkingDirectory: '/Users/ann',
    Umask: 0o077,
    RunAtLoad: true,
    KeepAlive: { SuccessfulExit: false },
    ThrottleInterval: 10,
    ExitTimeOut: 60,
    AbandonProcessGroup: false,
    ProcessType: 'Interactive',
    SoftResourceLimits: { NumberOfFiles: 65_536 },
    StandardOutPath: of.outFile,
    StandardErrorPath: of.outFile,
  })
})
