import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  defineService,
  pathWarnings,
  servicePath,
  stableMain,
  stableNode,
  type DefinitionSource,
} from './definition.ts'
import { plistText, readPlist } from './launchd-plist.ts'
import { readUnit, unitText } from './systemd-unit.ts'
import { parse } from 'plist'
import fc from 'fast-check'

const source = (more: Partial<DefinitionSource> = {}): DefinitionSource => ({
  env: { PATH: '/opt/tools:relative::/usr/bin:/opt/tools:/state/bin' },
  execPath: '/usr/bin/node',
  main: '/opt/svc/device-manager/main.js',
  homeDir: '/home/ada',
  places: { stateDir: '/state', bin: '/state/bin', logs: '/state/logs', out: '/state/logs/daemon.out' },
  umask: 0o027,
  ...more,
})

describe('defineService', () => {
  it('takes over the settings of the daemon and nothing else of the shell', () => {
    const env = { PATH: '/usr/bin', SVC_LOG_LEVEL: 'debug', SVC_TOKEN: 'secret', AWS_SECRET_ACCESS_KEY: 'secret' }
    expect(defineService(source({ env })).env).toEqual({
      PATH: '/usr/bin:/usr/local/bin:/bin',
      SVC_LOG_LEVEL: 'debug',
      SVC_STATE_DIR: '/state',
    })
  })

  it('takes over what says where the folders lie that the daemon hides from runs', () => {
    const env = {
      XDG_CONFIG_HOME: '/own/config',
      XDG_DATA_HOME: '/own/data',
      TMUX_TMPDIR: '/own/tmux',
      SCREENDIR: '/s',
    }
    expect(defineService(source({ env: { ...env, XDG_SESSION_ID: '1' } })).env).toEqual({
      ...env,
      PATH: expect.any(String),
      SVC_STATE_DIR: '/state',
    })
  })

  it('keeps absolute folders of the PATH once each, without that of the runs', () => {
    expect(servicePath('/opt/tools:relative::.:/usr/bin:/opt/tools:/state/bin', '/state/bin')).toEqual([
      '/opt/tools',
      '/usr/bin',
      '/usr/local/bin',
      '/bin',
    ])
  })

  it('refuses what no line of a unit can hold', () => {
    expect(() => defineService(source({ main: '/opt/a\nExecStartPre=/bin/evil/main.js' }))).toThrow(
      /control characters/,
    )
  })
})

it('starts the newest release of a checkout, and this one where it is not that', () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'svc-releases-')))
  const main = (name: string) => join(folder, name, 'device-manager/main.js')
  for (const name of ['a', 'b']) {
    mkdirSync(dirname(main(name)), { recursive: true })
    writeFileSync(main(name), '')
  }
  expect(stableMain(main('a'))).toBe(main('a'))
  symlinkSync('b', join(folder, 'current'))
  expect([stableMain(main('a')), stableMain(main('b'))]).toEqual([main('a'), main('current')])
  rmSync(folder, { recursive: true })
})

it('a copy with several versions is started by way of the current one', () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-definition-'))
  const file = (version: string, name: string) => join(folder, 'versions', version, name)
  for (const version of ['0.1.0', '0.2.0'])
    for (const name of ['node/bin/node', 'lib/device-manager/main.js']) {
      mkdirSync(dirname(file(version, name)), { recursive: true })
      writeFileSync(file(version, name), '')
    }
  symlinkSync('versions/0.2.0', join(folder, 'current'))
  const main = 'lib/device-manager/main.js'
  const [node, current] = ['node/bin/node', join(folder, 'current')]
  expect(stableMain(file('0.2.0', main))).toBe(join(current, main))
  expect(stableNode(file('0.2.0', node), '')).toBe(join(current, node))
  expect(pathWarnings({ node: join(current, node), main: join(current, main) })).toEqual([])
  // One that is not the current one is named as it is.
  expect(stableMain(file('0.1.0', main))).toBe(file('0.1.0', main))
  rmSync(folder, { recursive: true })
})

describe('the Node of the service', () => {
  it('is the running one where its path holds no version', () => {
    expect(stableNode('/usr/bin/node', '/opt/bin')).toBe('/usr/bin/node')
  })
  it('is the versioned one where nothing else leads to it, with a warning', () => {
    const node = '/home/ada/.nvm/versions/node/v24.1.0/bin/node'
    expect(stableNode(node, '/usr/bin:/bin')).toBe(node)
    expect(pathWarnings({ node, main: '/opt/svc/main.js' })).toMatchObject([{ code: 'unstable_path' }])
    expect(pathWarnings({ node: '/opt/homebrew/opt/node@24/bin/node', main: '/opt/svc/main.js' })).toEqual([])
    expect(pathWarnings({ node: '/usr/bin/node', main: '/home/ada/.npm/_npx/3f/svc/main.js' })).toHaveLength(1)
  })
})

// As numbers: to make ready for texts of them takes fast-check a second.
const characters = fc.array(fc.integer({ min: 0, max: 0x10_ff_ff }), { minLength: 1, maxLength: 30 })
const path = characters.map((drawn) => {
  // oxlint-disable-next-line no-control-regex
  return `/${String.fromCodePoint(...drawn).replaceAll(/[\u0000-\u001f\u007f\uD800-\uDFFF\uFFFE\uFFFF:]/g, '')}`
})

const nodePath = path.map((text) => text.replaceAll(/["'\\]/g, ''))

describe('the files', () => {
  it('give back what was put in, whatever characters the paths have', () => {
    fc.assert(
      fc.property(nodePath, path, path, (execPath, stateDir, tools) => {
        const places = { stateDir, bin: `${stateDir}/bin`, logs: `${stateDir}/logs`, out: `${stateDir}/logs/out` }
        const definition = defineService(source({ execPath, env: { PATH: tools }, places, main: `${tools}/m.js` }))
        const wanted = { node: definition.node, main: definition.main, path: definition.env['PATH'], stateDir }
        expect(readUnit(unitText(definition))).toEqual(wanted)
        expect(readPlist(plistText(definition))).toEqual(wanted)
      }),
      // Patterns take these characters for the end of a line; systemd and launchd do not.
      {
        examples: [
          ['/\u2028', '/a\u2029b', '/\\\u2028"'],
          ['/a', '/\u0085', '/\u2029$'],
        ],
      },
    )
  })

  it('are not taken for ours when others wrote them', () => {
    expect(readUnit('[Service]\nExecStart=/bin/true\n')).toBeNull()
    expect(readPlist('not a plist')).toBeNull()
    expect(readPlist('<plist version="1.0"><dict><key>Label</key><string>x</string></dict></plist>')).toBeNull()
  })

  it('put a unit in words systemd reads', () => {
    const odd = defineService(source({ execPath: '/a b/100%/$x/node', main: '/c"d/\\e/$HOME/50%/main.js' }))
    const lines = unitText(odd).split('\n')
    expect(lines).toContain(
      String.raw`ExecStart="/a b/100%%/$x/node" "--disable-warning=ExperimentalWarning" "/c\"d/\\e/$$HOME/50%%/main.js" "run" "--service" "systemd"`,
    )
    expect(lines).toContain('UMask=0027')
    for (const line of ['Restart=always', 'RestartPreventExitStatus=78', 'KillMode=process', 'OOMPolicy=continue'])
      expect(lines).toContain(line)
  })

  it('refuse a Node in a folder that systemd takes no program from', () => {
    expect(() => unitText(defineService(source({ execPath: '/a"b/node' })))).toThrow(/quote or backslash/)
  })

  it('put an agent in keys launchd knows', () => {
    const plist = parse(plistText(defineService(source())))
    expect(plist).toEqual({
      Label: 'dev.svc.device',
      ProgramArguments: [
        '/usr/bin/node',
        '--disable-warning=ExperimentalWarning',
        '/opt/svc/device-manager/main.js',
        'run',
        '--service',
        'launchd',
      ],
      EnvironmentVariables: {
        HOME: '/home/ada',
        PATH: '/opt/tools:/usr/bin:/usr/local/bin:/bin',
        SVC_STATE_DIR: '/state',
      },
      WorkingDirectory: '/home/ada',
      Umask: 0o027,
      RunAtLoad: true,
      KeepAlive: { SuccessfulExit: false },
      ThrottleInterval: 10,
      ExitTimeOut: 60,
      AbandonProcessGroup: true,
      ProcessType: 'Interactive',
      SoftResourceLimits: { NumberOfFiles: 65_536 },
      StandardOutPath: '/state/logs/daemon.out',
      StandardErrorPath: '/state/logs/daemon.out',
    })
  })
})
