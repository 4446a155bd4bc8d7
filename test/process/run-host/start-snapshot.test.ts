import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { StartSnapshot } from '../../../device-manager/run/hosts/start-snapshot.ts'
import { runHostFile } from '../../../shared/lib/program-file.ts'
import { allProcesses } from '../../kit/programs-processes.ts'
import { waitFor } from '../../kit/programs.ts'
import { TestSystem } from '../../kit/system.ts'
import { snapshotOfWorker } from './host-client.ts'

let system: TestSystem
beforeAll(async () => {
  system = await TestSystem.start()
})
afterAll(() => system.stop())

const folder = () => join(system.device.stateDir, 'compile-cache/snapshots')
const whole = () => globSync('run-host-*', { cwd: folder() }).map((name) => join(folder(), name))

async function run(): Promise<void> {
  const agent = await system.api.createAgent({
    name: `a-${crypto.randomUUID()}`,
    harness: 'command',
    command: 'echo up',
  })
  const runId = await system.api.startRun(agent.id)
  await system.api.waitForRun(runId, 'succeeded')
}

const spare = () =>
  waitFor(() => system.device.hosts().find(({ runId }) => runId === null), 'a run host stands by', { ms: 60_000 })

test('a device makes one when nothing waits, and the run hosts after that begin with it', async () => {
  const [file] = await waitFor(() => (whole().length > 0 ? whole() : null), 'there is a snapshot', { ms: 100_000 })
  await run()
  const { hostId } = await spare()
  const [host] = allProcesses(hostId)
  expect(host?.command).toContain(`--snapshot-blob ${file}`)
  await run()
})

test('one that Node cannot start with holds up no run, and one that is not whole is not taken', async () => {
  const [file] = whole()
  await system.device.end()
  rmSync(file!)
  const spoilt = Buffer.from('not what it was')
  const name = file!.slice(0, file!.lastIndexOf('.'))
  const refused = `${name}.${crc32(spoilt).toString(16)}`
  writeFileSync(refused, spoilt)
  writeFileSync(`${name}.0`, spoilt)
  await system.device.start()
  await run()
  expect(existsSync(refused)).toBe(false)
  expect(system.device.log.split('is started without').length).toBe(2)
})

test('another version has its own, and a folder that cannot be written has none', async () => {
  const made = (await snapshotOfWorker())!
  const programs = join(system.root, 'programs')
  mkdirSync(join(programs, 'chunks'), { recursive: true })
  const source = join(programs, runHostFile)
  writeFileSync(source, '0')
  const cache = join(made, '../..')
  expect(new StartSnapshot(cache, source).find()).toBeNull()
  writeFileSync(join(system.root, 'file'), '')
  const nowhere = new StartSnapshot(join(system.root, 'file'), source)
  await nowhere.make()
  expect(nowhere.find()).toBeNull()
  expect(readFileSync(made).length).toBeGreaterThan(1e6)
})
