import { describe, expect, test } from 'vitest'
import { mountLine } from './mount-entry.ts'
import {
  enterCommand,
  holderCommand,
  holderScript,
  mountEntries,
  type Holding,
  type HolderPlan,
  trueExit,
  troubleIn,
} from './namespaces.ts'
import { sandboxCommand, sandboxProfile } from './profile.ts'
import type { WallSpec } from './spec.ts'
import { judge } from '../isolation/trial.ts'

const plan: HolderPlan = {
  stateDir: '/home/ann/.local/share/svc-device',
  shown: ['bin'],
  folders: ["/home/ann/it's/svc"],
  files: ['/run/user/1000/bus'],
  pinned: ['/home/ann/.local', '/home/ann/.local/share'],
  readOnly: [],
  readOnlyInside: [],
  cgroups: ['/sys/fs/cgroup'],
  flags: {
    '/sys/fs/cgroup': ['nosuid', 'relatime'],
    '/home/ann/.local/share/svc-device': ['noatime'],
    '/proc': ['noexec'],
  },
  procFiles: [],
  isRoot: false,
}
const programs = Object.fromEntries(
  ['bwrap', 'unshare', 'setpriv', 'nsenter', 'mount', 'sandbox-exec'].map((name) => [name, `/usr/bin/${name}`]),
)
const spec = (tool: WallSpec['tool']): WallSpec => ({
  tool,
  programs,
  stateDir: plan.stateDir,
  hidden: [],
  marks: {},
  doors: [],
  executed: { always: [], checkout: null },
})
const entering = {
  file: '/usr/bin/tool',
  args: ['--flag', 'a b'],
  env: {
    PATH: '/home/ann/bin:/usr/bin',
    LD_LIBRARY_PATH: '/home/ann/lib',
    BASH_ENV: '/home/ann/x',
    SVC_TOKEN: 'secret',
  },
  cwd: '/home/ann/code',
  report: '/state/report',
}

const how = (mounting: Holding['mounting']): Holding => ({ mounting, own: ['own/h_1'] })
const words = (text: string) => text.split(' ')

describe('the holder', () => {
  test('bwrap makes namespaces and nothing else; the mounts are those of the script', () => {
    const namespaces = '--unshare-user --unshare-pid --as-pid-1 --die-with-parent --cap-add ALL --dev-bind / / --'
    expect(holderCommand(spec('bwrap'), plan, how('at_once')).slice(0, -1)).toEqual(
      words(`/usr/bin/bwrap ${namespaces} /bin/sh -c`),
    )
    expect(holderCommand(spec('bwrap'), plan, how('at_once')).at(-1)).toBe(holderScript(plan, how('at_once')))
  })

  test('unshare makes the same ones, and dies with the host', () => {
    const namespaces = '--user --map-current-user --keep-caps --mount --propagation slave --pid'
    expect(holderCommand(spec('unshare'), plan, how('at_once')).slice(0, -1)).toEqual(
      words(
        `/usr/bin/setpriv --pdeathsig KILL -- /usr/bin/unshare ${namespaces} --fork --kill-child=KILL -- /bin/sh -c`,
      ),
    )
  })

  const state = "'/home/ann/.local/share/svc-device'"
  const hosts = "'/home/ann/.local/share/svc-device/hosts'"

  test('the state folder shows what a run needs, the rest is empty, sockets of others are closed', () => {
    const lines = holderScript(plan, how('each')).split('\n')
    expect(lines).toContain(`mount --no-mtab --move ${hosts} ${state}`)
    const bin = "'/home/ann/.local/share/svc-device/hosts/bin'"
    expect(lines).toContain(`mount -o rbind '/home/ann/.local/share/svc-device/bin' ${bin}`)
    expect(lines).toContain(`mount -o remount,bind,ro,noatime ${bin}`)
    expect(lines).toContain(`mount -o rbind '${plan.stateDir}/own/h_1' '${plan.stateDir}/hosts/own/h_1'`)
    // The last change.
    expect(lines.at(-3)).toBe(`mount -o remount,bind,ro ${state}`)
    expect(lines).toContain("mount -t tmpfs -o ro,mode=0700,nosuid,nodev 'svc' '/home/ann/it'\\''s/svc'")
    expect(lines).toContain("mount -o rbind '/dev/null' '/run/user/1000/bus'")
    expect(lines).toContain("mount -o rbind '/home/ann/.local' '/home/ann/.local'")
    expect(lines).toContain("mount -o remount,bind,ro,nosuid,relatime '/sys/fs/cgroup'")
    expect(lines[0]).toBe('set -e')
    expect(lines.some((line) => line.includes("'/proc/sys'"))).toBe(false)
    const asRoot = holderScript({ ...plan, procFiles: ['/proc/sys'] }, how('each'))
    expect(asRoot).toContain("mount -o rbind '/proc/sys' '/proc/sys'\nmount -o remount,bind,ro,noexec '/proc/sys'\n")
  })

  test('at once, one program reads the same mounts from a table; no path is split, or begins a comment', () => {
    const spaced = { ...plan, folders: ['/home/ann/our #1 \\ svc\n'], procFiles: ['/proc/sys'] }
    const script = holderScript(spaced, how('at_once'))
    expect(script.match(/^mount .*$/gm)).toEqual([
      'mount -t proc svc /proc',
      expect.stringContaining('mount -t devpts'),
      `mount -t tmpfs -o mode=0700,nosuid,nodev svc ${hosts}`,
      "mount --all --fstab '/home/ann/.local/share/svc-device/hosts/.mounts'",
      `mount --no-mtab --move ${hosts} ${state}`,
      `mount -o remount,bind,ro ${state}`,
    ])
    expect(script).toContain(
      "'svc /home/ann/our\\040\\0431\\040\\134\\040svc\\012 tmpfs ro,mode=0700,nosuid,nodev 0 0'",
    )
    expect(mountEntries(spaced, ['own/h_1']).filter((entry) => !script.includes(mountLine(entry)))).toEqual([])
  })
})

describe('entering', () => {
  test('leads through the namespaces without capabilities, by absolute paths alone', () => {
    const { file, args } = enterCommand(spec('bwrap'), { pid: 77, isRoot: false }, entering)
    expect(file).toBe('/bin/sh')
    const nsenter = '/usr/bin/nsenter --no-fork --preserve-credentials --user --mount --pid --target 77 --'
    const setpriv = '/usr/bin/setpriv --ambient-caps=-all --inh-caps=-all --no-new-privs --'
    expect(args.slice(2, args.lastIndexOf('-c'))).toEqual(
      words(`svc /state/report ${nsenter} /usr/bin/unshare --fork -- ${setpriv} /bin/sh`),
    )
    expect(args.slice(-3)).toEqual(['/usr/bin/tool', '--flag', 'a b'])
    expect(enterCommand(spec('bwrap'), { pid: 77, isRoot: true }, entering).args).toContain('--bounding-set=-all')
  })

  test('what makes a program load code is set for the program alone; the token is never an argument', () => {
    const { args, env } = enterCommand(spec('bwrap'), { pid: 77, isRoot: false }, entering)
    expect(env).toEqual({ PATH: '/home/ann/bin:/usr/bin', SVC_TOKEN: 'secret' })
    expect(args).toContain('LD_LIBRARY_PATH=/home/ann/lib')
    expect(args.join(' ')).not.toContain('secret')
  })
})

describe('the report of the steps', () => {
  test('the program began, or what kept it from that', () => {
    expect(troubleIn('begun\n')).toBe(null)
    expect(troubleIn('setpriv: a warning\nbegun\n')).toBe(null)
    expect(troubleIn('nsenter: cannot open /proc/7/ns/user\n')).toBe('nsenter: cannot open /proc/7/ns/user')
    expect(troubleIn('')).toBe('the programs that lead into it were stopped.')
  })

  test('a kill that unshare could not repeat is told as what it was', () => {
    const failed = 'begun\nunshare: sigprocmask unblock failed: Invalid argument\n'
    expect(trueExit(failed, { exitCode: 1, signal: null })).toEqual({ exitCode: null, signal: 'SIGKILL' })
    expect(trueExit('begun\n', { exitCode: 1, signal: null })).toEqual({ exitCode: 1, signal: null })
    expect(trueExit('begun\n', { exitCode: null, signal: 'SIGTERM' })).toEqual({ exitCode: null, signal: 'SIGTERM' })
  })
})

describe('the judgement of the trial', () => {
  const good = ['state bin', 'state compile-cache', 'capabilities 0000000000000000', 'first cat', 'done']
  const of = (...lines: string[]) => judge({ tool: 'bwrap' }, lines.join('\n'))
  test('nothing is wrong with what hides all', () => expect(of(...good)).toBe(null))
  test.each([
    [['state device-token', ...good], 'not hidden'],
    [['hidden login.json', ...good], 'not hidden'],
    [['unmounted', ...good], 'undo'],
    [['opened', ...good], 'reach around'],
    [['regrouped', ...good], 'control group'],
    [['group /sys/fs/cgroup/user.slice/cgroup.kill', ...good], 'control group'],
    [good.filter((line) => line !== 'first cat'), 'processes outside'],
    [good.map((line) => line.replace('0000000000000000', '0000000000000001')), 'capabilities'],
    [good.slice(0, -1), 'could not be started'],
  ])('%j', (lines, why) => expect(of(...lines)).toContain(why))
})

describe('the profile for macOS', () => {
  test('denies the folders, allows what is shown, and keeps signals within', () => {
    const profile = sandboxProfile({ ...plan, folders: ['/Users/ann/a "b"'] }, ['own/h_1'])
    expect(profile.split('\n')).toEqual([
      '(version 1)',
      '(allow default)',
      '(deny file* network* (subpath "/home/ann/.local/share/svc-device"))',
      '(deny file* network* (subpath "/Users/ann/a \\"b\\""))',
      '(deny file* network* (literal "/run/user/1000/bus"))',
      '(deny file-write-unlink (literal "/home/ann/.local"))',
      '(deny file-write-unlink (literal "/home/ann/.local/share"))',
      '(allow file-read* (subpath "/home/ann/.local/share/svc-device/bin"))',
      '(allow file* (subpath "/home/ann/.local/share/svc-device/own/h_1"))',
      '(allow file-read-metadata (literal "/home/ann/.local/share/svc-device") (literal "/home/ann/.local/share/svc-device/own"))',
      '(deny signal)',
      '(allow signal (target same-sandbox))',
      '(deny process-info*)',
      '(allow process-info* (target same-sandbox))',
      '(allow process-exec* process-fork)',
    ])
  })

  test('is handed to sandbox-exec, inside of which the folder is entered', () => {
    const { args } = sandboxCommand(spec('sandbox-exec'), { profile: '(version 1)', acts: null }, entering)
    expect(args.slice(2, 8)).toEqual(['svc', '/state/report', '/usr/bin/sandbox-exec', '-p', '(version 1)', '/bin/sh'])
  })
})
