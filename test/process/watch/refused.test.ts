import { spawnSync } from 'node:child_process'
import { mkdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { Folder } from '../../../shared/api/folders.ts'
import type { ControlValue } from '../../../shared/device/control.ts'
import { isLong } from '../../kit/forms.ts'
import { waitFor } from '../../kit/programs.ts'
import { TestSystem } from '../../kit/system.ts'

// A system that has no watch left for the daemon, by the limits of a user namespace of its own.

function under(limit: string, count: number): string[] {
  const script = `echo ${count} > /proc/sys/user/${limit}; exec "$@"`
  return ['unshare', '--user', '--map-root-user', 'sh', '-c', script, 'sh']
}

const says = 'cannot be watched; they are looked at each minute'

test.for([
  ['max_inotify_instances', 0],
  ...(isLong
    ? ([
        ['max_inotify_watches', 0],
        ['max_inotify_watches', 2],
      ] as const)
    : []),
] as const)(
  'with %s of %i the daemon goes on, says so once, and refresh tells what is true',
  async ([limit, count], { skip }) => {
    const via = under(limit, count)
    const tried = spawnSync(via[0]!, [...via.slice(1), 'true'])
    if (tried.status !== 0) skip('this user may make no user namespace')
    const system = await TestSystem.start({ device: { via } })
    onTestFinished(() => system.stop())
    const { device } = system
    const [one, two] = [join(system.root, 'one'), join(system.root, 'two')]
    for (const rootPath of [one, two]) {
      mkdirSync(rootPath)
      const body = { displayName: 'x', rootPath, deviceId: device.identity.publicId }
      await system.api.call('POST', '/folders', body)
    }
    const states = async () => {
      const { sources } = await system.api.call<{ sources: Folder[] }>('GET', '/folders')
      return sources.map(({ config, state }) => [config.rootPath, state])
    }
    await waitFor(async () => (await states()).every(([, state]) => state === 'ok'), 'the folders are looked at')
    await waitFor(() => device.log.includes(says), 'the log line')
    renameSync(one, join(system.root, 'away'))
    const { folders } = (await device.control({ op: 'refresh' })) as ControlValue<'refresh'>
    expect(folders.map(({ rootPath, ok }) => [rootPath, ok])).toEqual([
      [one, false],
      [two, true],
    ])
    expect(Object.fromEntries(await states())).toEqual({ [one]: 'missing', [two]: 'ok' })
    expect(device.log.split(says)).toHaveLength(2)
    expect(device.isRunning).toBe(true)
  },
)
