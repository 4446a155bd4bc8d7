import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { linuxTools, needsTool } from '../../kit/needs-bubblewrap.ts'
import { mountOwnTmp } from '../../kit/own-tmp.ts'
import { wallSpecOf } from '../../kit/wall.ts'

// Programs that start others for whoever asks, on a machine with folders of the test's own in /tmp and /run/user.

const moduleAt = (path: string) => join(import.meta.dirname, '../../..', path)

describe.each(linuxTools)('behind the wall of %s', (tool) => {
  beforeEach((context) => needsTool(tool, context))

  test('a server that is started after the wall was made is not reached', async () => {
    // Not in /tmp, which is another one inside.
    const folder = mkdtempSync(join(process.cwd(), '.svc-doors-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const stateDir = join(folder, 'state')
    mkdirSync(join(stateDir, 'hosts'), { recursive: true })
    // The last two name what no run can do without.
    const told = ['/tmp/sockets', '/run/screen/S-me', folder, '/']
    const script = `
      import { execFileSync } from 'node:child_process'
      import { mkdirSync, statSync, writeFileSync } from 'node:fs'
      import { makeWall } from '${moduleAt('device-manager/wall/wall.ts')}'
      import { realWorld } from '${moduleAt('shared/lib/world.ts')}'
      const uid = process.getuid()
      const wall = await makeWall(${JSON.stringify(wallSpecOf(stateDir, tool, [], told))}, [], realWorld)
      const runtime = '/run/user/' + uid
      const made = ['/tmp/tmux-' + uid, ...['tmux-' + uid, 'zellij', 'systemd'].map((name) => runtime + '/' + name)]
      const doors = [...made, '/run/screen', ...${JSON.stringify(told)}.slice(0, 2)]
      const modes = doors.map((door) => {
        mkdirSync(door, { recursive: true })
        writeFileSync(door + '/default', 'open')
        return statSync(door).mode & 0o777
      })
      const env = { PATH: '/usr/bin:/bin' }
      const args = ['-c', 'cat ' + doors.map((door) => door + '/default').join(' ') + ' 2>/dev/null; echo looked']
      const entered = wall.enter({ file: '/bin/sh', args, env, cwd: '/', report: '/dev/null' })
      const seen = execFileSync(entered.file, entered.args, { env, encoding: 'utf8' })
      await wall.end()
      process.stdout.write(JSON.stringify({ seen, modes }))
      process.exit(0)`
    const node = [process.execPath, '--disable-warning=ExperimentalWarning', '--input-type=module-typescript', '-e']
    const setUp = `${mountOwnTmp()} && mount -t tmpfs own /run && mkdir -p "/run/user/$(id -u)" && mkdir -m 700 /run/screen && exec "$@"`
    const inside = ['--user', '--map-root-user', '--mount', '/bin/sh', '-c', setUp, 'sh', ...node, script]
    const { stdout } = await promisify(execFile)('unshare', inside)
    expect(JSON.parse(stdout)).toEqual({ seen: 'looked\n', modes: Array(7).fill(0o700) })
  })
})
