import { expect, test } from 'vitest'
import { factsFrom, isForServer, lineFor } from './hand-over.ts'

const shown = `LoadState=loaded
ActiveState=inactive
UnitFileState=enabled
User=svc
SupplementaryGroups=docker
Environment=PATH=/usr/bin:/bin SVC_DATA_DIR=/var/lib/svc
EnvironmentFiles=/etc/svc/server.env (ignore_errors=yes)
EnvironmentFiles=/etc/svc/more.env (ignore_errors=no)
`

test('what works on a database that nobody names is for the server of the service', () => {
  for (const line of ['user add --name Ann', 'token list', 'backup svc.tar', 'migrate --check', 'sandbox doctor'])
    expect(isForServer(line.split(' '), {}), line).toBe(true)
})

test('what is about the service itself, names a server or asks for help is done where it is typed', () => {
  const lines = [
    '',
    'start',
    '--port 0',
    'install-service --user svc',
    'uninstall-service',
    'service-status',
    '--version',
  ]
  const naming = [
    'user add --data-dir /x',
    'token list --database-url=postgres://x',
    'user --help',
    'usage --dataDir=/x',
  ]
  for (const line of [...lines, ...naming]) expect(isForServer(line.split(' ').filter(Boolean), {}), line).toBe(false)
  for (const env of [{ SVC_DATA_DIR: '/x' }, { SVC_DATABASE_URL: 'postgres://x' }])
    expect(isForServer(['token', 'list'], env)).toBe(false)
  expect(isForServer(['token', 'list'], { SVC_DATA_DIR: '' })).toBe(true)
})

test('what was handed on once is not handed on again, also where the settings empty the data folder', () => {
  expect(isForServer(['token', 'list'], { SVC_DATA_DIR: '', HANDED_TO_SVC_SERVER: '1' })).toBe(false)
})

test('account, groups, settings and data folder are those of the service', () => {
  const service = factsFrom(shown)!
  expect(lineFor(service, ['/opt/node', 'main.js', 'user', 'add', '--name', 'Ann $HOME ${PATH}'])).toEqual([
    '--pipe',
    '--wait',
    '--collect',
    '--quiet',
    '--property=UMask=0077',
    '--uid=svc',
    '--property=SupplementaryGroups=docker',
    '--property=EnvironmentFile=-/etc/svc/server.env',
    '--property=EnvironmentFile=-/etc/svc/more.env',
    '--setenv=SVC_DATA_DIR=/var/lib/svc',
    '--setenv=HANDED_TO_SVC_SERVER=1',
    '--',
    '/opt/node',
    'main.js',
    'user',
    'add',
    '--name',
    // systemd makes one of each two.
    'Ann $$HOME $${PATH}',
  ])
})

test('a service of a person has no account of its own, and a data folder may have spaces', () => {
  const own = shown
    .replace('User=svc', 'User=')
    .replace('SVC_DATA_DIR=/var/lib/svc', '"SVC_DATA_DIR=/home/ann/my data"')
  const service = factsFrom(own)!
  expect(service).toMatchObject({ user: '', dataDir: '/home/ann/my data' })
  expect(lineFor(service, ['node']).filter((word) => word.startsWith('--uid'))).toEqual([])
})

test('a unit that nobody uses keeps no server; one that was started does', () => {
  const unused = shown.replace('=enabled', '=disabled')
  expect(factsFrom(unused)).toBeNull()
  expect(factsFrom(unused.replace('ActiveState=inactive', 'ActiveState=active'))).not.toBeNull()
})

test('where there is no systemd, no service, or one that is not of svc, nothing is handed on', () => {
  for (const text of ['', 'LoadState=not-found\nUser=\n', shown.replace(/SVC_DATA_DIR=\S+/, '')])
    expect(factsFrom(text)).toBeNull()
})
