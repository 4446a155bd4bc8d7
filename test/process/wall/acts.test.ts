import { execFileSync, spawnSync } from 'node:child_process'
import { createServer } from 'node:net'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { identityOf } from '../../../device-manager/process/identity.ts'
import { listPids, readStat } from '../../../device-manager/process/proc.ts'
import { actsIn, actsScript, type DeviceActs } from '../../../device-manager/wall/device-acts.ts'
import type { WallAct } from '../../../shared/runs/wall-acts.ts'
import { linuxTools, needsTool } from '../../kit/needs-bubblewrap.ts'
import { wallSpecOf } from '../../kit/wall.ts'
import { outputOf, specOf, spooled, testDevice, type TestDevice } from '../run-host/host-client.ts'

// The forbidden acts of a run behind a device's wall: tried, told, and able to fail.

const triedOnLinux: WallAct[] = [
  'write_outside',
  'read_host',
  'daemon_socket',
  'other_run',
  'signal',
  'ptrace',
  'mount',
]

let device: TestDevice
beforeEach((context) => {
  needsTool('unshare', context)
  device = testDevice({ isWalled: true })
  writeFileSync(join(device.stateDir, 'device-token'), 'the token of the device')
})
afterEach(() => device.remove())

describe.each(linuxTools)('behind the wall of %s', (tool) => {
  beforeEach((context) => needsTool(tool, context))

  async function prepared(command: string) {
    const host = await device.host()
    const spec = specOf(device, { command })
    await host.connect()
    host.assign(spec, { wall: wallSpecOf(device.stateDir, tool)! })
    await host.reply('prepared')
    return { host, spec }
  }

  test('all are refused, the program begins, and both are told while the run lives and at its end', async () => {
    const { host, spec } = await prepared('echo it began; sleep 1')
    host.start()
    const { acts } = await host.reply('wall')
    const { report } = await host.reply('ended')
    await host.left()
    expect(outputOf(spooled(device, spec.runId).events).toString()).toContain('it began')
    expect(report).toMatchObject({ exitReason: 'completed', wall: acts })
    const refused = acts.filter(({ outcome }) => outcome === 'refused').map(({ act }) => act)
    expect(refused.toSorted()).toEqual(triedOnLinux.toSorted())
    expect(acts.filter(({ outcome }) => outcome === 'not_refused')).toEqual([])
    expect(acts).toContainEqual({
      act: 'connect_outside',
      outcome: 'not_applicable',
      seen: 'A run on a device has the network of its machine.',
    })
  })

  test('a wall that was opened after it was made starts nothing, and the run says which act it would have been', async () => {
    const { host, spec } = await prepared('echo it began')
    const holder = listPids().find(
      (pid) => isBelow(pid, host.child.pid!) && readStat(pid) !== null && commandOf(pid) === 'cat',
    )
    const enter = ['--target', String(holder), '--user', '--preserve-credentials', '--mount', '--pid']
    execFileSync('nsenter', [...enter, 'umount', '--lazy', device.stateDir])
    host.start()
    const { report } = await host.reply('ended')
    await host.left()
    expect(report).toMatchObject({
      exitReason: 'dispatch_error',
      message: expect.stringMatching(/^The wall around the run does not hold, so it was not started: it could write/),
      wall: expect.arrayContaining([expect.objectContaining({ act: 'read_host', outcome: 'not_refused' })]),
    })
    expect(outputOf(spooled(device, spec.runId).events).toString()).not.toContain('it began')
  })
})

const isBelow = (pid: number, above: number): boolean => {
  for (let at = pid; at > 1; at = readStat(at)?.ppid ?? 0) if (at === above) return true
  return false
}

const commandOf = (pid: number) => execFileSync('cat', [`/proc/${pid}/comm`], { encoding: 'utf8' }).trim()

const same = (acts: DeviceActs) => acts

/** Where there is no wall at all, the same lines tell that each act is done. */
test.each<[WallAct, (acts: DeviceActs) => DeviceActs]>([
  ['write_outside', (acts) => acts],
  ['write_outside', (acts) => ({ ...acts, stateDir: '/nowhere', program: join(acts.stateDir, 'device-token') })],
  ['read_host', (acts) => acts],
  ['read_host', (acts) => ({ ...acts, stateDir: '/nowhere', folders: ['/empty nowhere', acts.stateDir] })],
  ['daemon_socket', (acts) => acts],
  ['other_run', (acts) => acts],
  ['ptrace', (acts) => acts],
  ['signal', (acts) => acts],
  ['signal', (acts) => ({ ...acts, isLinux: false })],
  ...(process.getuid?.() === 0 ? [['mount', same] as [WallAct, typeof same]] : []),
])('outside of a wall %s is told as not refused, and the shell goes no further', async (act, change) => {
  const { stateDir } = device
  mkdirSync(join(stateDir, 'runs', 'run_of_another'), { recursive: true })
  const socket = createServer().listen(join(stateDir, 'daemon.sock'))
  onTestFinished(() => void socket.close())
  const outside = [identityOf(process.pid)!]
  const acts = { stateDir, folders: [], own: ['own/h1'], program: null, outside, isLinux: true }
  const script = `${actsScript(change(acts))}echo began`
  const { status, stdout, stderr } = spawnSync('/bin/sh', ['-c', script, 'svc'], { encoding: 'utf8' })
  expect([status, stdout]).toEqual([125, ''])
  expect(actsIn(stderr)).toContainEqual({ act, outcome: 'not_refused', seen: expect.any(String) })
})

test('a process of the run that has the number of one outside is not taken for it', () => {
  const outside = [{ pid: process.pid, startTime: '1' }]
  const acts = { stateDir: '/nowhere', folders: [], own: [], program: null, outside, isLinux: true }
  const { stderr } = spawnSync('/bin/sh', ['-c', actsScript(acts), 'svc'], { encoding: 'utf8' })
  for (const act of ['ptrace', 'signal'] as const)
    expect(actsIn(stderr)).toContainEqual({ act, outcome: 'refused', seen: expect.any(String) })
})
