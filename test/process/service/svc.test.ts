import { existsSync, writeFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { waitFor } from '../../kit/programs.ts'
import { makeRepo } from '../../kit/system-scenario.ts'
import { TestSystem } from '../../kit/system.ts'
import { TestMachine, type Ended } from './machine.ts'

/** The commands a person types, against a real server; only systemctl and loginctl are stubs. */
let system: TestSystem
let machine: TestMachine
beforeAll(async () => {
  system = await TestSystem.start({ devices: 0 })
  machine = new TestMachine()
})
afterAll(async () => {
  await machine.close()
  await system.stop()
})

const json = (ended: Ended, from: 'stdout' | 'stderr' = 'stdout'): Record<string, unknown> => {
  if (ended[from] === '') throw new Error(`status ${ended.status}: ${ended.stderr}`)
  return JSON.parse(ended[from]) as Record<string, unknown>
}

/** A run whose harness is at work until it is let go. */
async function startRun(deviceId: string) {
  const folder = join(machine.root, 'repo')
  makeRepo(folder)
  const { shortId } = await system.api.addFolder({ displayName: 'repo', rootPath: folder, deviceId })
  const started = join(machine.root, 'starts')
  const command = `echo started >> '${started}'; until [ -e '${machine.root}/go' ]; do sleep 0.05; done`
  const agent = await system.api.createAgent({ name: 'waiter', harness: 'command', defaultFolderId: shortId, command })
  const runId = await system.api.startRun(agent.id)
  await waitFor(() => existsSync(started), 'the harness is at work')
  return {
    runId,
    starts: () => readFileSync(started, 'utf8').trim().split('\n').length,
    letGo: () => writeFileSync(join(machine.root, 'go'), ''),
  }
}

it.runIf(process.platform === 'linux')(
  'lets systemd keep the device manager running, from connect to disconnect',
  async () => {
    const refused = await machine.svc('device', 'install-service')
    expect(refused).toMatchObject({ status: 1, stdout: '' })
    expect(refused.stderr).toContain('cli.service.not_connected')

    const { url, token } = system.server
    expect((await machine.svc('login', '--server', url, '--token', token)).status).toBe(0)
    const byHand = json(await machine.svc('device', 'connect', '--name', 'kept'))
    const installed = await machine.svc('device', 'install-service')
    expect(installed.status).toBe(0)
    expect(json(installed)).toMatchObject({ changed: true, tookOver: byHand['pid'], manager: 'systemd', warnings: [] })
    const now = json(await machine.svc('device', 'status'))
    expect(now).toMatchObject({
      running: true,
      pid: json(installed)['pid'],
      service: { installed: true, running: true, enabled: true, lingering: true },
    })
    const problems = now['problems'] as { code?: string }[]
    expect(problems.filter(({ code }) => code !== undefined)).toEqual([])

    // With a live run: it outlives the restart, and without a daemon nobody would take it up.
    const run = await startRun(String(byHand['publicId']))
    expect(json(await machine.svc('device', 'uninstall-service'), 'stderr')).toMatchObject({
      error: { code: 'cli.service.runs_active', message: expect.stringContaining(run.runId) as string },
    })

    // A restart is systemd's, or it would start a second daemon beside the new one.
    machine.calls()
    const restarted = json(await machine.svc('device', 'restart'))
    expect(restarted).toMatchObject({ restarted: true, link: 'connected' })
    expect(machine.changes()).toEqual([
      'systemctl --user stop svc-device.service',
      'systemctl --user start svc-device.service',
    ])

    run.letGo()
    await system.api.waitForRun(run.runId, 'succeeded')
    expect(run.starts()).toBe(1)

    // The service's node is gone: what `status` says when nothing runs any more.
    await machine.done('stop')
    const unit = readFileSync(machine.unitFile, 'utf8')
    writeFileSync(machine.unitFile, unit.replace(process.execPath, '/gone/bin/node'))
    const down = await machine.svc('device', 'status')
    expect(down.status).toBe(9)
    expect(json(down)['problems']).toContainEqual({
      code: 'node_missing',
      message: 'The Node that the service starts is gone: /gone/bin/node.',
      fix: 'svc device install-service',
    })
    writeFileSync(machine.unitFile, unit)

    machine.calls()
    expect(json(await machine.svc('device', 'connect'))).toMatchObject({
      link: 'connected',
      publicId: byHand['publicId'],
    })
    expect(machine.changes()).toContain('systemctl --user start svc-device.service')

    const disconnected = await machine.svc('device', 'disconnect')
    expect(json(disconnected)).toMatchObject({ disconnected: true })
    expect(disconnected.stderr).toContain('the service stays installed')
    expect(machine.daemonPid).toBeNull()

    expect(json(await machine.svc('device', 'uninstall-service'))).toMatchObject({ changed: true })
    const again = await machine.svc('device', 'uninstall-service')
    expect(json(again)).toMatchObject({ changed: false })
    expect(existsSync(machine.unitFile)).toBe(false)
    expect(machine.homeFiles().filter((file) => file.includes('systemd'))).toEqual([])
  },
)
