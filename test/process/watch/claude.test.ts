import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { Device } from '../../../shared/api/devices.ts'
import { waitFor } from '../../kit/programs.ts'
import { fetchHarness } from '../../kit/real-harness.ts'
import { TestSystem } from '../../kit/system.ts'

test('the real claude, whose credentials come and go, is shown as signed in and out, and a run waits for them', async ({
  skip,
}) => {
  const found = fetchHarness('claude')
  if ('missing' in found) {
    process.stderr.write(`\n*** NOT TESTED: the real claude is not available here. ${found.missing}\n\n`)
    return skip('the real claude is not available here')
  }
  const system = await TestSystem.start({ devices: 0 })
  onTestFinished(() => system.stop())
  const { api } = system
  const device = system.makeDevice()
  writeFileSync(join(device.homeDir, '.profile'), `PATH="${found.binDir}:$PATH"\n`)
  await device.enrol(api, system.server.url)
  await device.start()
  const signedIn = async () => {
    const { devices } = await api.call<{ devices: Device[] }>('GET', '/devices')
    const [{ providerReadiness }] = devices as [Device]
    return 'harnesses' in providerReadiness ? providerReadiness.harnesses['claude']?.signedIn : undefined
  }
  await waitFor(async () => (await signedIn()) === false, 'it is installed and not signed in')
  const { publicId: deviceId } = device.identity
  const place = { displayName: 'home', rootPath: device.homeDir, deviceId }
  const { shortId: defaultFolderId } = await api.addFolder(place)
  const { id } = await api.createAgent({ name: 'Stranger', harness: 'claude', defaultFolderId })
  const runId = await api.startRun(id, 'Do it.')
  await waitFor(async () => (await api.run(runId)).gateReason !== null, 'the run waits')
  expect(await api.run(runId)).toMatchObject({
    gateReason: 'pinned_route_not_ready',
    gateDescription: expect.stringContaining('Claude Code'),
  })
  await api.cancel(runId)
  const folder = join(device.homeDir, '.claude')
  const file = join(folder, '.credentials.json')
  mkdirSync(folder, { recursive: true })
  const credentials = { accessToken: 'a', refreshToken: 'b', expiresAt: 1, scopes: ['user:inference'] }
  // Its own answer takes a third of a second of a quiet processor; without a watch it would be asked in a minute.
  const patience = { ms: 30_000, everyMs: 200, about: () => device.log }
  writeFileSync(file, JSON.stringify({ claudeAiOauth: credentials }))
  await waitFor(async () => (await signedIn()) === true, 'it is signed in', patience)
  rmSync(file)
  await waitFor(async () => (await signedIn()) === false, 'it is signed out', patience)
})
