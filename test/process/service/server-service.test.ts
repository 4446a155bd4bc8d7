import { spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { parse } from 'plist'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { serverPlistText } from '../../../control-plane/service/server-plist.ts'
import { serverUnitText } from '../../../control-plane/service/server-unit.ts'
import {
  installService,
  serviceStatus,
  uninstallService,
  type ServiceSetup,
} from '../../../control-plane/service/service.ts'
import { servicePlaces, type RunTool } from '../../../control-plane/service/system.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import { programFile } from '../../kit/program-file.ts'

// `svc-server install-service` and the like on a systemd of the test, which remembers what it was asked.

let root: string
let calls: string[]
let accounts: Set<string>
let isUp: boolean
/** How the server that is started behaves. */
let server: 'listens' | 'fails'
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'svc-server-service-')))
  calls = []
  accounts = new Set()
  isUp = false
  server = 'listens'
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

const run: RunTool = async (name, args) => {
  const done = { status: 0, stdout: '', said: '' }
  if (name === 'id') return accounts.has(args[1]!) ? done : { ...done, status: 1 }
  const verb = args.find((each) => !each.startsWith('-'))
  if (!['show', 'show-environment'].includes(verb!)) calls.push(`${name} ${args.join(' ')}`)
  if (name === 'systemd-sysusers') accounts.add(/^u (\S+)/.exec(readFileSync(args[0]!, 'utf8'))![1]!)
  if (verb === 'start' || verb === 'restart') {
    isUp = server === 'listens'
    if (isUp) listen()
  }
  if (args.includes('--now')) isUp = false
  if (verb !== 'show') return done
  const failed = server === 'fails' ? 'ActiveState=failed\nResult=exit-code\nExecMainStatus=78\nMainPID=0' : ''
  const shown = isUp ? 'ActiveState=active\nMainPID=77' : failed || 'ActiveState=inactive\nMainPID=0'
  return { ...done, stdout: `LoadState=loaded\nUnitFileState=enabled\n${shown}\n` }
}

function setup({ isOfSystem = true, ...more }: Partial<ServiceSetup> & { isOfSystem?: boolean } = {}): ServiceSetup {
  const places = servicePlaces({ isOfSystem, home: join(root, 'home'), dataDir: join(root, 'data'), root })
  return {
    places,
    run,
    world: realWorld,
    platform: 'linux',
    execPath: '/bin/sh',
    main: '/bin/sh',
    path: '/root/bin:/usr/bin',
    home: join(root, 'home'),
    uid: 501,
    ...more,
  }
}

function listen(): void {
  for (const folder of [join(root, 'var/lib/svc'), join(root, 'data')]) {
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'server.json'), '{"url":"http://127.0.0.1:4400","pid":77}')
  }
}

test('a service of the machine gets an account, a file of settings for root alone and a unit, and goes without them', async () => {
  const { places } = setup()
  const installed = await installService(setup(), null)
  expect(installed).toMatchObject({ user: 'svc', changed: true, pid: 77, url: 'http://127.0.0.1:4400' })
  expect(calls).toEqual([
    `systemd-sysusers ${places.accountFile}`,
    'systemctl daemon-reload',
    'systemctl enable svc-server',
    'systemctl start svc-server',
  ])
  expect([places.environmentFile, places.unitFile].map((path) => statSync(path).mode & 0o777)).toEqual([0o600, 0o644])
  expect(statSync(dirname(places.environmentFile)).mode & 0o777).toBe(0o755)
  expect(readFileSync(places.unitFile, 'utf8')).toContain('Environment="PATH=/usr/bin:/usr/local/bin:/bin"')

  // Again: nothing is made anew, and settings of the operator stay.
  writeFileSync(places.environmentFile, 'SVC_PORT=4500\n')
  calls = []
  expect(await installService(setup(), null)).toMatchObject({ changed: false })
  expect(calls).not.toContain('systemctl restart svc-server')
  expect(readFileSync(places.environmentFile, 'utf8')).toBe('SVC_PORT=4500\n')
  // Of another account: the server is started anew.
  accounts.add('ops')
  expect(await installService(setup(), 'ops')).toMatchObject({ changed: true, user: 'ops' })
  expect(calls).toContain('systemctl restart svc-server')
  expect(await serviceStatus(setup())).toMatchObject({
    installed: true,
    running: true,
    pid: 77,
    url: 'http://127.0.0.1:4400',
  })

  expect(await uninstallService(setup())).toMatchObject({
    changed: true,
    kept: [places.environmentFile, places.dataDir],
  })
  expect([existsSync(places.unitFile), existsSync(places.environmentFile)]).toEqual([false, true])
  expect(await serviceStatus(setup())).toMatchObject({ installed: false })
  expect(await uninstallService(setup())).toMatchObject({ changed: false })
})

test('a service of a person asks the systemd of the person, and makes no account', async () => {
  const own = setup({ isOfSystem: false })
  expect(await installService(own, null)).toMatchObject({ user: null, dataDir: join(root, 'data') })
  expect(calls).toEqual([
    'systemctl --user daemon-reload',
    'systemctl --user enable svc-server',
    'systemctl --user start svc-server',
  ])
  await expect(installService(own, 'ops')).rejects.toThrow('type the command as root')
})

test('what cannot work is said before anything is written, and where to look when the server ends', async () => {
  const closed = join(root, 'closed')
  mkdirSync(closed, { mode: 0o700 })
  writeFileSync(join(closed, 'main.js'), '')
  await expect(installService(setup({ main: join(closed, 'main.js') }), null)).rejects.toThrow('is closed to others')
  await expect(installService(setup(), 'nobody-of-this-name')).rejects.toThrow('There is no account')
  await expect(installService(setup(), 'x; rm')).rejects.toThrow('is no name of an account')
  await expect(installService(setup({ platform: 'win32' }), null)).rejects.toThrow('no service of the server for win32')
  await expect(installService(setup({ platform: 'darwin' }), null)).rejects.toThrow('a service of a person')
  const away: RunTool = async () => ({ status: null, stdout: '', said: 'spawn systemctl ENOENT' })
  await expect(installService(setup({ run: away }), null)).rejects.toThrow('There is no systemd')
  expect(existsSync(join(root, 'etc'))).toBe(false)

  server = 'fails'
  await expect(installService(setup(), null)).rejects.toThrow(
    /ended \(exit-code, status 78\).*journalctl -u svc-server/,
  )
})

test('systemd finds nothing to complain about in the units', (context) => {
  if (spawnSync('systemd-analyze', ['--version']).error) {
    process.stderr.write('NOT RUN: systemd-analyze is not installed, so no systemd has read the units of the server\n')
    context.skip('systemd-analyze is not installed')
  }
  const odd = join(root, 'a 100% $HOME é')
  mkdirSync(odd)
  const unit = join(root, 'svc-server.service')
  for (const user of ['root', null]) {
    const parts = {
      node: process.execPath,
      main: join(odd, 'main.js'),
      path: '/usr/bin',
      dataDir: odd,
      environmentFile: '/etc/svc/server.env',
    }
    writeFileSync(unit, serverUnitText({ ...parts, user }))
    const { stderr, status } = spawnSync(
      'systemd-analyze',
      ['verify', '--man=no', ...(user === null ? ['--user'] : []), unit],
      {
        encoding: 'utf8',
        env: { PATH: process.env['PATH'], HOME: root, XDG_RUNTIME_DIR: root },
      },
    )
    expect([status, stderr.split('\n').filter((line) => line.includes('svc-server'))]).toEqual([0, []])
  }
})

/** launchd as far as a server meets it: what is loaded runs, unless it ends by itself. */
function launchd(): { run: RunTool; asked: string[] } {
  let isLoaded = false
  const asked: string[] = []
  const run: RunTool = async (name, args) => {
    const [verb, what = ''] = args
    const done = { status: 0, stdout: '', said: '' }
    if (verb !== 'print' && verb !== 'print-disabled') asked.push(`${name} ${args.join(' ')}`)
    if (verb === 'bootstrap' || verb === 'kickstart') {
      isLoaded = true
      isUp = server === 'listens'
      if (isUp) listen()
    }
    if (verb === 'bootout') isLoaded = false
    if (verb !== 'print' || !what.endsWith('/dev.svc.server')) return done
    if (!isLoaded) return { status: 113, stdout: '', said: 'Could not find service' }
    return { ...done, stdout: isUp ? '\tstate = running\n\tpid = 77\n' : '\tlast exit code = 0\n' }
  }
  return { run, asked }
}

test('on macOS a person has it kept by launchd, which has the server read the settings', async () => {
  const { run: asks, asked } = launchd()
  const places = servicePlaces({
    isOfSystem: false,
    home: join(root, 'home'),
    dataDir: join(root, 'data'),
    platform: 'darwin',
  })
  const mac = setup({ platform: 'darwin', places, run: asks })
  const file = join(root, 'home/Library/LaunchAgents/dev.svc.server.plist')
  expect(await installService(mac, null)).toMatchObject({ unit: file, user: null, changed: true, pid: 77 })
  expect(asked.splice(0)).toEqual(['launchctl enable gui/501/dev.svc.server', `launchctl bootstrap gui/501 ${file}`])
  expect([file, places.environmentFile].map((path) => statSync(path).mode & 0o777)).toEqual([0o644, 0o600])
  expect(await serviceStatus(mac)).toMatchObject({ installed: true, enabled: true, running: true, pid: 77 })
  // Again: it goes on; with another PATH it is loaded anew.
  expect(await installService(mac, null)).toMatchObject({ changed: false })
  expect(asked.splice(0)).toEqual([
    'launchctl enable gui/501/dev.svc.server',
    'launchctl kickstart gui/501/dev.svc.server',
  ])
  expect(await installService({ ...mac, path: '/opt/homebrew/bin' }, null)).toMatchObject({ changed: true })
  expect(asked.splice(0)).toEqual([
    'launchctl enable gui/501/dev.svc.server',
    'launchctl bootout gui/501/dev.svc.server',
    `launchctl bootstrap gui/501 ${file}`,
  ])
  expect(await uninstallService(mac)).toMatchObject({ changed: true, kept: [places.environmentFile, places.dataDir] })
  expect([asked.splice(0), existsSync(file)]).toEqual([['launchctl bootout gui/501/dev.svc.server'], false])

  server = 'fails'
  await expect(installService(mac, null)).rejects.toThrow(/ended \(by itself, status 0\).*tail .*server\.out/)
  const away: RunTool = async () => ({ status: 113, stdout: '', said: 'Could not find domain' })
  await expect(installService({ ...mac, run: away }, null)).rejects.toThrow('no session on the screen')
})

test.runIf(process.platform === 'linux')(
  'what launchd starts reads the settings, and ends with 0 where no start helps',
  async () => {
    const environmentFile = join(root, 'server.env')
    const unit = { node: process.execPath, main: programFile('control-plane'), path: '/usr/bin:/bin', user: null }
    const of = { homeDir: root, outFile: join(root, 'server.out') }
    const keys = parse(serverPlistText({ ...unit, dataDir: join(root, 'data'), environmentFile }, of)) as {
      ProgramArguments: string[]
      EnvironmentVariables: Record<string, string>
    }
    writeFileSync(environmentFile, 'SVC_PORT=none\n')
    const [program, ...words] = keys.ProgramArguments
    const under = (line: readonly string[]) =>
      spawnSync(program!, line, { env: keys.EnvironmentVariables, encoding: 'utf8' })
    expect(under(words)).toMatchObject({ status: 0, stderr: expect.stringContaining('SVC_PORT') as string })
    expect(under(words.slice(0, -2)).status).toBe(78)
  },
)
