import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { hostRecord } from '../../../device-manager/run-host/wire/protocol.ts'
import { beginWall, type Wall } from '../../../device-manager/wall/wall.ts'
import { realWorld } from '../../../shared/lib/world.ts'
import { linuxTools, needsTool } from '../../kit/needs-bubblewrap.ts'
import { allProcesses } from '../../kit/programs-processes.ts'
import { whyNoSmallDisk } from '../../kit/small-disk.ts'
import { wallSpecOf } from '../../kit/wall.ts'
import { specOf, testDevice } from '../run-host/host-client.ts'
import { waitFor } from '../../kit/programs.ts'

// A wall is made before there is a run.

const run = promisify(execFile)

describe.each(linuxTools)('with the wall of %s', (tool) => {
  beforeEach((context) => needsTool(tool, context))

  function machine() {
    const stateDir = realpathSync(mkdtempSync(join(tmpdir(), 'svc-ahead-')))
    onTestFinished(() => rmSync(stateDir, { recursive: true, force: true }))
    const own = join(stateDir, "own/it's own")
    for (const folder of [join(stateDir, 'hosts'), join(stateDir, 'bin'), own]) mkdirSync(folder, { recursive: true })
    writeFileSync(join(stateDir, 'token'), 'secret')
    const ahead = beginWall(wallSpecOf(stateDir, tool)!, [own], realWorld)
    const take = async () => {
      const wall = await ahead.take()
      onTestFinished(() => wall.end())
      return wall
    }
    return { stateDir, own, ahead, take }
  }

  async function inside(wall: Wall, script: string): Promise<string[]> {
    const env = { PATH: process.env['PATH'] ?? '' }
    const { file, args } = wall.enter({ file: '/bin/sh', args: ['-c', script], env, cwd: '/', report: '/dev/null' })
    return (await run(file, args, { env })).stdout.split('\n').filter(Boolean)
  }

  /** The first process of the namespaces, once all stands. */
  const holderOf = (stateDir: string): Promise<number> =>
    waitFor(() => {
      const first = allProcesses('').find(({ pid }) => isFirst(pid) && mountsOf(pid).includes(` / ${stateDir} ro`))
      return first?.pid ?? null
    }, 'the holder stands')

  test('the folder of the run can be written to, and nothing else is seen or changed', async () => {
    const { stateDir, own, take } = machine()
    const pid = await holderOf(stateDir)
    const wall = await take()
    expect(wall.holder?.pid).toBe(pid)
    const lines = await inside(
      wall,
      `cd '${stateDir}'; find . | sort; echo mine > "own/it's own/file"; { echo x > new; } 2>/dev/null || echo refused`,
    )
    expect(lines).toEqual(['.', './bin', './own', "./own/it's own", 'refused'])
    expect(readFileSync(join(own, 'file'), 'utf8')).toBe('mine\n')
  })

  test('is made anew where the holder ended meanwhile', async () => {
    const { stateDir, take } = machine()
    const pid = await holderOf(stateDir)
    process.kill(pid, 'SIGKILL')
    await waitFor(() => !existsSync(`/proc/${pid}`), 'it is gone')
    const wall = await take()
    expect(wall.holder?.pid).not.toBe(pid)
    expect(await inside(wall, `ls '${stateDir}'`)).toEqual(['bin', 'own'])
  })

  test('is made anew where another folder is in the place of its own', async () => {
    const { stateDir, own, take } = machine()
    await holderOf(stateDir)
    rmSync(own, { recursive: true })
    mkdirSync(own)
    writeFileSync(join(own, 'file'), 'mine\n')
    expect(await inside(await take(), `cat '${stateDir}/own/it'\\''s own/file'`)).toEqual(['mine'])
  })

  test('is made anew where the machine is not as it was', async () => {
    const { stateDir, take } = machine()
    const pid = await holderOf(stateDir)
    mkdirSync(join(stateDir, 'compile-cache'))
    const wall = await take()
    expect(await inside(wall, `ls '${stateDir}'`)).toEqual(['bin', 'compile-cache', 'own'])
    await waitFor(() => !existsSync(`/proc/${pid}`), 'the first one is gone')
  })

  test('is made anew where something was mounted meanwhile, also where mounts are not shared', async ({ skip }) => {
    const why = whyNoSmallDisk()
    if (why !== null) skip(why)
    const root = realpathSync(mkdtempSync(join(tmpdir(), 'svc-ahead-')))
    onTestFinished(() => rmSync(root, { recursive: true, force: true }))
    const [stateDir, disk] = [join(root, 'state'), join(root, 'disk')]
    for (const folder of [stateDir, join(stateDir, 'hosts'), disk]) mkdirSync(folder)
    const moduleAt = (path: string) => join(import.meta.dirname, '../../..', path)
    // In a mount namespace of its own, which ends with it.
    const script = `
      import { execFileSync } from 'node:child_process'
      import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
      import { setTimeout as pause } from 'node:timers/promises'
      import { beginWall } from '${moduleAt('device-manager/wall/wall.ts')}'
      import { realWorld } from '${moduleAt('shared/lib/world.ts')}'
      const [stateDir, disk] = ${JSON.stringify([stateDir, disk])}
      const ahead = beginWall(${JSON.stringify(wallSpecOf(stateDir, tool))}, [], realWorld)
      const shows = (pid) => {
        try {
          return readFileSync('/proc/' + pid + '/mountinfo', 'utf8').includes(' / ' + stateDir + ' ro')
        } catch {
          return false
        }
      }
      while (!readdirSync('/proc').some(shows)) await pause(5)
      execFileSync('mount', ['-t', 'tmpfs', 'none', disk])
      writeFileSync(disk + '/file', '')
      const wall = await ahead.take()
      const { file, args } = wall.enter({ file: 'ls', args: [disk], env: {}, cwd: disk, report: '/dev/null' })
      process.stdout.write(execFileSync(file, args, { env: { PATH: process.env.PATH }, encoding: 'utf8' }))
      await wall.end()
      process.exit(0)`
    const node = [process.execPath, '--disable-warning=ExperimentalWarning', '--input-type=module-typescript']
    const { stdout } = await run('unshare', ['-m', '--propagation', 'private', ...node, '-e', script])
    expect(stdout).toBe('file\n')
  })

  test('that is not wanted leaves nothing', async () => {
    const { stateDir, ahead } = machine()
    const pid = await holderOf(stateDir)
    ahead.end()
    await waitFor(() => allProcesses(stateDir).length === 0 && !existsSync(`/proc/${pid}`), 'nothing is left')
  })

  test('a run host that stands by takes it for its run, and with it when it is killed', async () => {
    const device = testDevice({ isWalled: true })
    onTestFinished(() => device.remove())
    const wall = wallSpecOf(device.stateDir, tool)!
    const host = await device.host()
    await host.connect()
    host.send({ type: 'stand_by', wall })
    const pid = await holderOf(realpathSync(device.stateDir))
    host.assign(specOf(device, { command: 'echo here > here; sleep 600' }), { wall })
    await host.reply('prepared')
    host.start()
    await waitFor(() => existsSync(join(device.workDir, 'here')), 'the run works')
    const record = () => hostRecord.parse(JSON.parse(readFileSync(host.recordPath, 'utf8')))
    await waitFor(() => record().wall?.pid === pid, 'the record names it')
    host.child.kill('SIGKILL')
    await waitFor(() => !existsSync(`/proc/${pid}`), 'the wall is gone')
  })

  test('a run host that stood by in vain leaves nothing', async () => {
    const device = testDevice({ isWalled: true })
    onTestFinished(() => device.remove())
    const host = await device.host()
    await host.connect()
    host.send({ type: 'stand_by', wall: wallSpecOf(device.stateDir, tool)! })
    const pid = await holderOf(realpathSync(device.stateDir))
    expect(existsSync(join(device.stateDir, 'own', host.hostId))).toBe(true)
    host.send({ type: 'discard' })
    await host.left()
    await waitFor(() => !existsSync(`/proc/${pid}`), 'the wall is gone')
    expect(existsSync(join(device.stateDir, 'own', host.hostId))).toBe(false)
  })
})

const mountsOf = (pid: number): string => told(pid, 'mountinfo')

const isFirst = (pid: number): boolean => /^NSpid:.*\t1$/m.test(told(pid, 'status'))

/** Of a process that may be gone by now. */
function told(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8')
  } catch {
    return ''
  }
}
