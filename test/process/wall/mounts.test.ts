import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { linuxTools, needsTool } from '../../kit/needs-bubblewrap.ts'
import { wallSpecOf } from '../../kit/wall.ts'

// A machine with mounts of its own, made in a namespace of the test.

const run = promisify(execFile)
const wallModule = join(import.meta.dirname, '../../../device-manager/wall/wall.ts')
const worldModule = join(import.meta.dirname, '../../../shared/lib/world.ts')

describe.each(linuxTools)('with the wall of %s', (tool) => {
  beforeEach((context) => needsTool(tool, context))

  /** Returns what a program behind the wall says on a machine whose mounts `mounts` makes; `$D` is a folder, `$D/home` a file system. */
  async function behindTheWall(
    mounts: string,
    look: string,
    { kept, walls }: { kept?: string; walls: number } = { walls: 1 },
  ): Promise<string[]> {
    const folder = mkdtempSync(join(tmpdir(), 'svc-mounts-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    for (const name of ['home', 'other', 'part', 'covered']) mkdirSync(join(folder, name))
    const always = kept === undefined ? [] : [join(folder, 'home/ann', kept)]
    const spec = {
      ...wallSpecOf(join(folder, 'home/ann/state'), tool, [join(folder, 'home/ann/login')]),
      executed: { always, checkout: null },
    }
    const script = `
      import { execFileSync } from 'node:child_process'
      import { makeWall } from '${wallModule}'
      import { realWorld } from '${worldModule}'
      const own = '${folder}/home/ann/state/runs/run_1/harness'
      const env = { PATH: process.env.PATH, D: '${folder}' }
      const look = { file: '/bin/sh', args: ['-c', ${JSON.stringify(look)}], env, cwd: '/', report: '/dev/null' }
      for (let made = 0; made < ${walls}; made += 1) {
        const wall = await makeWall(${JSON.stringify(spec)}, [own], realWorld)
        const { file, args } = wall.enter(look)
        process.stdout.write(execFileSync(file, args, { env }))
        await wall.end()
      }
      process.exit(0)`
    const node = [process.execPath, '--disable-warning=ExperimentalWarning', '--input-type=module-typescript', '-e']
    const setUp = `set -e; D='${folder}'
      mount -t tmpfs -o nosuid,nodev,noexec,noatime home "$D/home"
      mkdir -p "$D/home/ann/login" "$D/home/ann/state/hosts" "$D/home/ann/state/bin" "$D/home/ann/state/runs/run_1/harness"
      echo token >"$D/home/ann/state/token"; echo login >"$D/home/ann/login/login.json"; echo mine >"$D/home/ann/mine"
      ${mounts}
      exec "$@"`
    const inside = ['--user', '--map-root-user', '--mount', '/bin/sh', '-c', setUp, 'sh', ...node, script]
    const { stdout } = await run('unshare', inside)
    return stdout.split('\n').filter(Boolean)
  }

  test('flags of the file system that may not be taken off do not keep it from standing', async () => {
    const lines = await behindTheWall(
      '',
      'cd "$D/home/ann"; ls -A . state login; touch state/runs/run_1/harness/x && echo written; touch state/bin/x || echo kept',
    )
    expect(lines).toEqual(['.:', 'login', 'mine', 'state', 'login:', 'state:', 'bin', 'runs', 'written', 'kept'])
  })

  test('what shows the same files at another path is hidden there, and only that', async () => {
    const mounts = `mount --bind "$D/home/ann" "$D/other"; mount --bind "$D/home/ann/login" "$D/part"
      mount --bind "$D/home" "$D/covered"; mount -t tmpfs cover "$D/covered"; mkdir -p "$D/covered/ann/login"; echo theirs >"$D/covered/ann/login/file"`
    const look =
      'cd "$D"; for each in other/state other/login part covered/ann/login; do echo "$each:"; ls -A "$each"; done; cat other/mine'
    const lines = await behindTheWall(mounts, look)
    expect(lines).toEqual(['other/state:', 'other/login:', 'part:', 'covered/ann/login:', 'file', 'mine'])
  })

  test('what is mounted and unmounted meanwhile in a folder that svc executes does not keep it from standing', async () => {
    const mounts = `mkdir -p "$D/home/ann/packages/busy"
      while [ -e "$D/part" ]; do mount -t tmpfs busy "$D/home/ann/packages/busy"; umount "$D/home/ann/packages/busy"; done >/dev/null 2>&1 &`
    const look = 'cd "$D/home/ann/packages"; { echo x >new; } 2>/dev/null || echo kept'
    const walls = 20
    const lines = await behindTheWall(mounts, look, { kept: 'packages', walls })
    expect(lines).toEqual(Array.from({ length: walls }, () => 'kept'))
  })

  test('a mount that is covered does not pass for one that the wall needs', async () => {
    const mounts = 'mount --bind "$D/home/ann" "$D/home/ann"; mount --bind "$D/home" "$D/home"'
    const look =
      'cd "$D/home"; mv ann moved 2>/dev/null || echo pinned; ls -A ann/login; echo mine >ann/state/runs/run_1/harness/x && echo written'
    expect(await behindTheWall(mounts, look)).toEqual(['pinned', 'written'])
  })
})
