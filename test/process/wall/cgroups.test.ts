import { execFile, spawn } from 'node:child_process'
import { chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeEach, describe, expect, onTestFinished, test, type TestContext } from 'vitest'
import { killCgroup, processesInCgroup, removeRunCgroup } from '../../../device-manager/process/cgroup.ts'
import { makeTestGroup } from '../../kit/control-group.ts'
import { linuxTools, needsTool } from '../../kit/needs-bubblewrap.ts'
import { becomeUser } from '../../kit/nobody.ts'
import { waitFor } from '../../kit/programs.ts'
import { wallSpecOf } from '../../kit/wall.ts'

// A device manager that is a service of its user: its control group belongs to this user, who needs no signal to end all
// that is in it. As root the test becomes another user, since root owns every group.

const run = promisify(execFile)
const ordinary = 1234
const isRoot = process.getuid?.() === 0
const moduleAt = (path: string) => join(import.meta.dirname, '../../..', path)

/** A group that this user may change, with a bystander in it; skips, and has it counted, where there can be none. */
async function groupWithBystander({ skip }: Pick<TestContext, 'skip'>) {
  const group = makeTestGroup()
  if (group === null) return skip('this user may make no control group (version 2) here')
  if (isRoot) for (const name of ['.', ...readdirSync(group)]) chownSync(join(group, name), ordinary, ordinary)
  const bystander = spawn('/bin/sh', ['-c', `echo $$ >'${group}/cgroup.procs'; echo in; exec sleep 600`])
  onTestFinished(async () => {
    killCgroup(group)
    await waitFor(() => processesInCgroup(group).length === 0, 'the group is empty')
    removeRunCgroup(group)
  })
  await new Promise((resolve) => bystander.stdout.once('data', resolve))
  return { group, bystander }
}

describe.each(linuxTools)('behind the wall of %s', (tool) => {
  beforeEach((context) => needsTool(tool, context))

  /** Returns what `look` says behind a wall that a process of the group makes, as an ordinary user. */
  async function behindTheWall(group: string, look: string): Promise<string[]> {
    const root = mkdtempSync(join(tmpdir(), 'svc-groups-'))
    onTestFinished(() => rmSync(root, { recursive: true, force: true }))
    const stateDir = join(root, 'state')
    for (const folder of [stateDir, join(stateDir, 'hosts')]) mkdirSync(folder)
    if (isRoot) for (const folder of [root, stateDir, join(stateDir, 'hosts')]) chownSync(folder, ordinary, ordinary)
    const script = `
      import { execFileSync } from 'node:child_process'
      import { makeWall } from '${moduleAt('device-manager/wall/wall.ts')}'
      import { realWorld } from '${moduleAt('shared/lib/world.ts')}'
      ${becomeUser(ordinary)}
      const wall = await makeWall(${JSON.stringify(wallSpecOf(stateDir, tool))}, [], realWorld)
      const env = { PATH: '/usr/bin:/bin' }
      const look = { file: '/bin/sh', args: ['-c', ${JSON.stringify(look)}], env, cwd: '/', report: '/dev/null' }
      const { file, args } = wall.enter(look)
      process.stdout.write(execFileSync(file, args, { env }))
      await wall.end()
      process.exit(0)`
    const node = [process.execPath, '--disable-warning=ExperimentalWarning', '--input-type=module-typescript', '-e']
    const inGroup = `echo $$ >'${group}/cgroup.procs'; exec "$@"`
    // Where the attack succeeds, it ends this too.
    const { stdout } = await run('/bin/sh', ['-c', inGroup, 'sh', ...node, script])
    return stdout.split('\n').filter(Boolean)
  }

  test('a run cannot end or freeze what shares its control group', async (context) => {
    const { group, bystander } = await groupWithBystander(context)
    const lines = await behindTheWall(
      group,
      `exec 2>&1; cd '${group}' && echo there
      for file in cgroup.freeze cgroup.procs cgroup.kill; do { true >>$file; } && echo "wrote $file"; done
      { echo 1 >cgroup.kill; } && echo wrote
      mkdir inner && echo made; mount -o remount,bind,rw '${group}/..'
      unshare --user --map-root-user --mount sh -c "umount -l /sys/fs/cgroup; mount -t cgroup2 none /mnt; mount -o remount,bind,rw '${group}/..'; echo 1 >cgroup.kill && echo wrote in a namespace"
      unshare --user --map-root-user --mount --cgroup sh -c "mount -t cgroup2 none /mnt && echo mounted && echo 1 >/mnt/cgroup.kill && echo wrote"
      echo looked`,
    )
    expect(lines[0]).toBe('there')
    expect(lines.at(-1)).toBe('looked')
    expect(lines.filter((line) => /^(wrote|made|mounted)/.test(line))).toEqual([])
    expect(processesInCgroup(group)).toEqual([bystander.pid])
  })
})
