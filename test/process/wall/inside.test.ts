import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { WallSpec } from '../../../device-manager/wall/spec.ts'
import { isLong } from '../../kit/forms.ts'
import { linuxTools, needsTool } from '../../kit/needs-bubblewrap.ts'
import { wallSpecOf } from '../../kit/wall.ts'
import { outputOf, specOf, spooled, testDevice, until, type TestDevice } from '../run-host/host-client.ts'

// Tests what a command sees and can do behind the wall, in real run hosts, by both ways of making it.

let device: TestDevice
let login: string
let lastEvents: ReturnType<typeof spooled>['events'] = []
beforeEach(() => {
  device = testDevice({ isWalled: true })
  login = join(device.stateDir, '..', 'login')
  mkdirSync(login)
  writeFileSync(join(login, 'login.json'), 'the login of the person')
  writeFileSync(join(device.stateDir, 'device-token'), 'the token of the device')
  mkdirSync(join(device.stateDir, 'bin'))
  writeFileSync(join(device.stateDir, 'bin', 'svc'), '#!/bin/sh\necho this is svc\n', { mode: 0o700 })
  symlinkSync(device.stateDir, join(device.workDir, 'link'))
})
afterEach(() => device.remove())

const moreExits: [string, { exitCode: number | null; signal: string | null }][] = [
  ['exit 1', { exitCode: 1, signal: null }],
  ['kill -INT $$', { exitCode: null, signal: 'SIGINT' }],
  ['kill -KILL $$', { exitCode: null, signal: 'SIGKILL' }],
  ['ulimit -c 0; kill -SEGV $$', { exitCode: null, signal: 'SIGSEGV' }],
]

/** In the short form the second tool, which is used where bubblewrap is missing, is tried only for what its wall shuts out. */
const isWhole = (tool: string) => isLong || tool === linuxTools[0]

describe.each(linuxTools)('behind the wall of %s', (tool) => {
  beforeEach((context) => needsTool(tool, context))

  async function run(command: string, change: Partial<WallSpec> = {}, input?: string) {
    const host = await device.host()
    const spec = specOf(device, { command })
    await host.connect()
    const wall = { ...wallSpecOf(device.stateDir, tool, [login])!, ...change }
    host.assign(spec, { wall, svcBinDir: join(device.stateDir, 'bin') })
    await host.reply('prepared')
    host.start()
    if (input !== undefined) {
      const said = () => outputOf(spooled(device, spec.runId).events).toString()
      await until(() => said().includes('ready'), 'ready')
      host.send({ type: 'input', inputId: '1', text: input })
    }
    const { report } = await host.reply('ended')
    await host.left()
    lastEvents = spooled(device, spec.runId).events
    const output = outputOf(lastEvents).toString().replaceAll('\r\n', '\n')
    return { report, output, lines: output.split('\n').filter((line) => line !== '') }
  }

  test('the folders of svc are not there, by whatever path, and what is needed of them is', async () => {
    const { output, lines } = await run(`
      for folder in '${device.stateDir}' '${login}' link "/proc/self/root${device.stateDir}"; do ls -1A "$folder"; echo .; done
      cat '${login}/login.json' link/device-token link/spool.db /proc/1/root${device.stateDir}/device-token 2>&1
      ls '${device.stateDir}/own'; cat "$SVC_PROMPT_FILE"; echo; svc; touch mine; cd /; touch '${device.workDir}/too'`)
    expect(output).not.toMatch(/the (login|token) of/)
    const [state, hidden, link, proc] = output.split('.\n').map((part) => part.split('\n').filter(Boolean))
    expect([state, hidden, link, proc]).toEqual([['bin', 'own'], [], ['bin', 'own'], ['bin', 'own']])
    expect(lines.slice(-3)).toEqual([expect.stringMatching(/^h\w+$/), 'Do it.', 'this is svc'])
    for (const name of ['mine', 'too']) expect(existsSync(join(device.workDir, name))).toBe(true)
  })

  test('what hides them cannot be taken away or written to, and nothing of svc can be changed', async () => {
    const { output } = await run(`
      exec 2>&1; set -x
      umount '${device.stateDir}'; umount -l '${login}'; mount --bind / /mnt; mount -o remount,rw '${device.stateDir}'
      rm -rf '${device.stateDir}' '${login}'; mv '${login}' '${login}-2'; rmdir '${device.stateDir}'
      echo planted > '${device.stateDir}/bin/svc'; echo planted > '${device.stateDir}/identity.json'
      unshare --user --map-root-user --mount --keep-caps sh -c "umount -l '${login}'; umount -l '${device.stateDir}'; ls -A '${login}'; cat link/device-token"
      nsenter --target 1 --mount --user cat link/device-token; cat /proc/1/cwd/*token /proc/1/fd/*`)
    expect(output).not.toMatch(/the (login|token) of/)
    expect(readFileSync(join(device.stateDir, 'bin', 'svc'), 'utf8')).toContain('this is svc')
    expect(readFileSync(join(login, 'login.json'), 'utf8')).toBe('the login of the person')
    expect(readFileSync(join(device.stateDir, 'device-token'), 'utf8')).toBe('the token of the device')
  })

  test('only the run’s own processes are there, and no signal reaches another one', async () => {
    const { lines, report } =
      await run(`ps -e -o comm= | sort -u; grep -E '^(CapEff|CapPrm|NoNewPrivs)' /proc/self/status
      kill -0 ${process.pid} && echo reached; kill -9 -1; echo still here; exit 3`)
    expect(lines.filter((line) => !/^(ps|sort|sh|dash|bash|grep)$/.test(line))).toEqual([
      'cat',
      'CapPrm:\t0000000000000000',
      'CapEff:\t0000000000000000',
      'NoNewPrivs:\t1',
      // Neither the test's process, nor any other than itself.
      expect.stringContaining('No such process'),
      expect.stringContaining('No such process'),
      'still here',
    ])
    expect(report).toMatchObject({ exitReason: 'error', exitCode: 3 })
  })

  if (!isWhole(tool)) return
  test('user, folder, terminal and job control are as without it', async () => {
    const command = `stty -echo; trap 'echo interrupted; exit 4' INT
      id -u; pwd; stty size; [ -t 0 ] && [ -t 1 ] && echo terminal; : </dev/tty && echo controlling
      ls -l /proc/self/fd | wc -l; script -qec 'echo a terminal of its own' /dev/null; ls /dev/pts | tr '\\n' ' '; echo
      echo ready; read x`
    const { lines } = await run(command, {}, '\u0003')
    expect(lines).toEqual([
      String(process.getuid!()),
      device.workDir,
      '40 120',
      'terminal',
      'controlling',
      // total, 0, 1, 2, and the folder that `ls` reads.
      '5',
      'a terminal of its own',
      'ptmx ',
      'ready',
      'interrupted',
    ])
  })

  test.each([
    ['exit 125', { exitCode: 125, signal: null }],
    ['exit 143', { exitCode: 143, signal: null }],
    ['kill -TERM $$', { exitCode: null, signal: 'SIGTERM' }],
    ['kill -9 0', { exitCode: null, signal: 'SIGKILL' }],
    ...(isLong ? moreExits : []),
  ])('%s is told as it was', async (command, exit) => {
    const { report, output } = await run(command)
    expect(report).toMatchObject({ exitReason: 'error', ...exit })
    expect(output).not.toContain('unshare')
  })

  test('a library that the environment names is loaded by the program alone', async () => {
    const library = join(device.workDir, 'libraries')
    mkdirSync(library)
    const host = await device.host()
    const spec = specOf(device, { command: 'echo "$LD_LIBRARY_PATH"; echo "$SVC_TOKEN" | wc -c' })
    await host.connect()
    const wall = wallSpecOf(device.stateDir, tool)
    host.assign(spec, { wall, env: { PATH: '/usr/bin:/bin', LD_LIBRARY_PATH: library } })
    await host.reply('prepared')
    host.start()
    await host.left()
    expect(outputOf(spooled(device, spec.runId).events).toString()).toBe(`${library}\r\n25\r\n`)
  })

  test.each(['the checkout of svc', 'another folder'])('a run in %s says whether it is that', async (where) => {
    const checkout = where === 'another folder' ? join(device.workDir, 'svc') : device.workDir
    const { lines } = await run('touch mine && echo worked', { executed: { always: [], checkout } })
    expect(lines).toEqual(['worked'])
    const notes = lastEvents.flatMap(({ kind, data }) => (kind === 'error' ? [data['class']] : []))
    expect(notes).toEqual(where === 'another folder' ? [] : ['svc_checkout'])
  })

  test('a wall that cannot be made starts no run', async () => {
    const programs = { ...wallSpecOf(device.stateDir, tool)!.programs, [tool]: '/bin/false' }
    const { report, output } = await run('echo started', { programs })
    expect(output).toBe('')
    expect(report).toMatchObject({ exitReason: 'harness_start_failed', exitCode: null })
    expect(report.message).toContain('could not be made')
  })

  test('a wall that cannot be entered starts no run, and says why', async () => {
    const programs = { ...wallSpecOf(device.stateDir, tool)!.programs, nsenter: '/nowhere/nsenter' }
    const { report, output } = await run('echo started', { programs })
    expect(output).toBe('')
    expect(report.exitReason).toBe('harness_start_failed')
    expect(report.message).toMatch(/could not be entered: .*\/nowhere\/nsenter/)
  })

  test('a folder that svc hides is none to work in', async () => {
    const inside = join(device.stateDir, 'inside')
    mkdirSync(inside)
    rmSync(device.workDir, { recursive: true })
    symlinkSync(inside, device.workDir)
    const { report } = await run('echo started')
    expect(report.exitReason).toBe('harness_start_failed')
    expect(report.message).toContain('hides from runs')
  })
})
