import { expect, test } from 'vitest'
import { valuesInUnit, wordsInUnit } from '../../shared/lib/unit-words.ts'
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
