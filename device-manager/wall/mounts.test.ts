import { expect, test } from 'vitest'
import { aliasesOf, cgroupMounts, isWithin, mountShownAt, parseMounts } from './mounts.ts'

const table = parseMounts(
  [
    '22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw',
    '30 22 8:2 / /home rw,nosuid,nodev shared:2 - ext4 /dev/sda2 rw',
    '31 22 8:2 /ann /srv/ann rw - ext4 /dev/sda2 rw',
    '32 22 8:2 /ann/.local/state/svc/logs /var/log/our\\040logs rw - ext4 /dev/sda2 rw',
    '33 22 8:2 /bob /srv/bob rw - ext4 /dev/sda2 rw',
    '34 22 8:1 /ann /other rw - ext4 /dev/sda1 rw',
    '',
  ].join('\n'),
)

test('a folder shows again where its file system, a parent of it, or a part of it is mounted once more', () => {
  expect(aliasesOf('/home/ann/.local/state/svc', table)).toEqual([
    { path: '/srv/ann/.local/state/svc', of: '/home/ann/.local/state/svc' },
    { path: '/var/log/our logs', of: '/home/ann/.local/state/svc/logs' },
  ])
  expect(aliasesOf('/home/carl/svc', table)).toEqual([])
})

test('the mount that lies on top decides where a folder is', () => {
  const stacked = parseMounts(
    ['1 0 8:1 / / rw - ext4 a rw', '2 1 8:2 / /home rw - ext4 b rw', '3 1 8:3 / /home rw - ext4 c rw'].join('\n'),
  )
  const again = [...stacked, ...parseMounts('4 1 8:3 / /again rw - ext4 c rw\n5 1 8:2 / /old rw - ext4 b rw')]
  expect(aliasesOf('/home/x', again)).toEqual([{ path: '/again/x', of: '/home/x' }])
})

test('mounts of control groups are told by their type, of both versions', () => {
  const lines = [
    '31 23 0:28 / /sys/fs/cgroup rw - tmpfs cgroup rw',
    '37 31 0:34 / /sys/fs/cgroup/freezer rw,nosuid shared:9 - cgroup cgroup rw,freezer',
    '41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw',
  ]
  const found = cgroupMounts(parseMounts(lines.join('\n')))
  expect(found.map(({ mountPoint }) => mountPoint)).toEqual(['/sys/fs/cgroup/freezer', '/sys/fs/cgroup/unified'])
})

test('a folder beside another one with the same beginning is not within it', () => {
  expect(isWithin('/home/annabel', '/home/ann')).toBe(false)
  expect(isWithin('/home/ann/..x', '/home/ann')).toBe(true)
  expect(isWithin('/home/ann', '/home/ann')).toBe(true)
  expect(isWithin('/home', '/home/ann')).toBe(false)
})

test('what a mount covers does not show, whatever is mounted there', () => {
  const mounts = parseMounts(
    [
      '1 0 8:1 / / rw - ext4 a rw',
      '2 1 8:2 / /home rw - ext4 b rw',
      '3 2 0:9 / /home/ann/svc ro,nosuid - tmpfs svc ro',
      '4 2 8:2 / /home rw - ext4 b rw',
      '5 4 0:10 / /home/ann/bin ro - tmpfs svc ro',
      '6 5 8:2 /x /home/ann/bin rw - ext4 b rw',
    ].join('\n'),
  )
  expect(mountShownAt('/home/ann/svc', mounts)).toMatchObject({ id: '4', mountPoint: '/home' })
  expect(mountShownAt('/home/ann/bin', mounts)).toMatchObject({ id: '6', isReadOnly: false })
  expect(mountShownAt('/home/ann/bin/x', mounts)?.id).toBe('6')
  expect(mountShownAt('/etc', mounts)).toMatchObject({ id: '1', type: 'ext4' })
  expect(mountShownAt('/etc', [])).toBeNull()
})
