import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { specOf, spooled, testDevice, type TestDevice } from './host-client.ts'

let device: TestDevice
beforeAll(() => {
  device = testDevice({ isWalled: true })
})
afterAll(() => device.remove())

test('a host that no daemon comes back to ends its run before the control plane gives it up', async () => {
  const host = await device.host()
  const spec = specOf(device, { command: 'sleep 300' })
  await host.launch({ ...spec, limits: { ...spec.limits, silentMs: 1_000 } })
  host.disconnect()
  await host.exited
  const { ending } = spooled(device, spec.runId)
  expect(ending?.report).toMatchObject({ exitReason: 'runner_lost' })
})

test('a secret that the harness wrote into a file is not in the change-set', async () => {
  const folder = join(device.workDir, 'repo')
  mkdirSync(folder)
  execFileSync('git', ['init', '--quiet'], { cwd: folder })
  const host = await device.host()
  const spec = specOf(device, { command: 'echo "key=$API_KEY" > config.txt; echo "$SVC_TOKEN" > token.txt' })
  const token = 'svc.run.token.0123456789'
  await host.launch(
    { ...spec, folder: { shortId: 'fs_0123456789abcdef', rootPath: folder } },
    { secrets: { API_KEY: 'hunter2-hunter2' }, token },
  )
  const { report } = await host.reply('ended')
  expect(report.exitReason).toBe('completed')
  await host.left()
  const changes = JSON.stringify(spooled(device, spec.runId).ending?.changeSet)
  expect(changes).toContain('config.txt')
  expect(changes).toContain('[redacted:API_KEY]')
  expect(changes).not.toContain('hunter2')
  expect(changes).not.toContain(token)
})
