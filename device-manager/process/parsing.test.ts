import { describe, expect, test } from 'vitest'
import { ownCgroup } from './cgroup.ts'
import { passableEnv } from './harness-env.ts'
import { parseEnv } from './login-env.ts'
import { parseStat } from './proc.ts'
import { isForeignBinary } from './program.ts'
import { parsePsLine } from './ps.ts'

describe('/proc/PID/stat', () => {
  const rest = (flags: number) => `S 7 8 9 0 -1 ${flags} 0 0 0 0 0 0 0 0 20 0 1 0 123456789 0 0`

  test('a name with spaces and parentheses', () => {
    expect(parseStat(`42 (a) S 1 (b) ${rest(4194304)}`)).toEqual({
      pid: 42,
      ppid: 7,
      pgid: 8,
      session: 9,
      uid: null,
      state: 'S',
      startTime: '123456789',
    })
  })

  test('kernel threads and cut texts are none', () => {
    expect(parseStat(`2 (kthreadd) ${rest(0x00208040)}`)).toBe(null)
    expect(parseStat('')).toBe(null)
    expect(parseStat('42 (a) S 7 8')).toBe(null)
  })
})

describe('ps', () => {
  test('a line as macOS writes it: the session is a pointer, the day has one digit', () => {
    expect(parsePsLine(' 501   1   501      0   502 Ss+  Sat Nov  1 03:04:05 2026 /bin/zsh -l HOME=/Users/x')).toEqual({
      pid: 501,
      ppid: 1,
      pgid: 501,
      session: null,
      uid: 502,
      state: 'S',
      startTime: 'Sat Nov 1 03:04:05 2026',
      command: '/bin/zsh -l HOME=/Users/x',
    })
  })

  test('a process without a command, and what is no line', () => {
    expect(parsePsLine('9 1 9 0 0 Z Sat Nov 21 03:04:05 2026')?.command).toBe('')
    expect(parsePsLine('PID PPID')).toBe(null)
    expect(parsePsLine('')).toBe(null)
  })
})

describe('the control group of this process', () => {
  const mount = (root: string, point: string) => `31 23 0:28 ${root} ${point} rw,nosuid shared:9 - cgroup2 cgroup2 rw`

  test.each([
    ['0::/user.slice/a.service', mount('/', '/sys/fs/cgroup'), '/sys/fs/cgroup/user.slice/a.service'],
    ['1:cpu:/x\n0::/', mount('/', '/sys/fs/cgroup/unified'), '/sys/fs/cgroup/unified'],
    ['0::/docker/1/in', mount('/docker/1', '/sys/fs/cgroup'), '/sys/fs/cgroup/in'],
    ['0::/a b', mount('/', '/mnt/with\\040space'), '/mnt/with space/a b'],
    ['0::/elsewhere', mount('/docker/1', '/sys/fs/cgroup'), null],
    ['1:cpu:/x', mount('/', '/sys/fs/cgroup'), null],
    ['0::/', '25 1 0:22 / /proc rw - proc proc rw', null],
  ])('%s', (cgroups, mounts, folder) => {
    expect(ownCgroup(cgroups, `20 1 0:5 / / rw - ext4 /dev/x rw\n${mounts}\n`)).toBe(folder)
  })
})

describe('binaries of another machine', () => {
  const elf = (machine: number, order: 'LE' | 'BE' = 'LE') => {
    const head = Buffer.alloc(64)
    head.write(`\x7fELF\x02${order === 'BE' ? '\x02' : '\x01'}`, 'latin1')
    head[order === 'BE' ? 'writeUInt16BE' : 'writeUInt16LE'](machine, 18)
    return head
  }
  const machO = Buffer.concat([Buffer.from('cffaedfe', 'hex'), Buffer.alloc(60)])

  test.each([
    [elf(62), 'linux', 'x64', false],
    [elf(3), 'linux', 'x64', false],
    [elf(183), 'linux', 'x64', true],
    [elf(62), 'linux', 'arm64', true],
    [elf(22, 'BE'), 'linux', 's390x', false],
    [elf(22, 'BE'), 'linux', 'x64', true],
    [elf(62), 'darwin', 'x64', true],
    [machO, 'linux', 'x64', true],
    [machO, 'darwin', 'arm64', false],
    [Buffer.from('#!/bin/sh\nexit 0 # a script'), 'linux', 'x64', false],
    [Buffer.from('MZ'), 'linux', 'x64', false],
  ] as const)('case %#', (head, platform, arch, isForeign) => {
    expect(isForeignBinary(head, platform, arch)).toBe(isForeign)
  })
})

describe('the environment that a shell tells', () => {
  const told = (body: string) => `motd begin_p x\nbegin_p\0${body}end_p\0`

  test('values with line ends and equals signs; noise before and after', () => {
    expect(parseEnv(`${told('PATH=/bin\0A=1=2\nB=3\0odd\0=x\0')}bye`, 'p')).toEqual({ PATH: '/bin', A: '1=2\nB=3' })
  })

  test.each(['', 'begin_p\0PATH=/bin\0', 'begin_p\0end_p\0', 'begin_q\0PATH=/bin\0end_q\0'])(
    'nothing: %j',
    (output) => {
      expect(parseEnv(output, 'p')).toBe(null)
    },
  )

  test('only what is on the list reaches a harness', () => {
    const kept = { PATH: '/bin', LC_ALL: 'C', CLAUDE_CODE_OAUTH_TOKEN: 'x', CLAUDE_CONFIG_DIR: 'x', https_proxy: 'x' }
    const left = {
      SVC_TOKEN: 'x',
      CLAUDECODE: '1',
      CLAUDE_CODE_SESSION_ID: 'x',
      NOTIFY_SOCKET: 'x',
      NODE_OPTIONS: 'x',
      npm_config_x: 'x',
    }
    expect(passableEnv({ ...kept, ...left, XDG_SESSION_ID: '3', LANG: undefined })).toEqual(kept)
  })
})
