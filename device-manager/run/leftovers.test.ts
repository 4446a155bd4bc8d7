import { idFrom } from '../../shared/lib/ids.ts'
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { hostPaths, runPaths } from '../run-host/wire/record.ts'
import { placesIn } from '../setup/places.ts'
import { listLeftovers, removeLeftovers, removeRunFolder } from './leftovers.ts'

function deviceWith({ runs, hosts }: { runs: readonly string[]; hosts: readonly string[] }) {
  const stateDir = mkdtempSync(join(tmpdir(), 'svc-leftovers-'))
  onTestFinished(() => rmSync(stateDir, { recursive: true, force: true }))
  for (const runId of runs) mkdirSync(runPaths(stateDir, idFrom(runId)).root, { recursive: true })
  for (const hostId of hosts) mkdirSync(join(hostPaths(stateDir, hostId).own, 'codex'), { recursive: true })
  const left = () => ['runs', 'own'].map((folder) => readdirSync(join(stateDir, folder)))
  return { places: placesIn(stateDir), left }
}
const log = { info: () => {} } as unknown as Parameters<typeof removeLeftovers>[1]['log']

test('folders of runs that are forgotten, and of hosts that have no record, go', async () => {
  const { places, left } = deviceWith({ runs: ['run_1', 'run_2'], hosts: ['h1', 'h2'] })
  const leftovers = listLeftovers(places)
  // Folders of a run that comes later are not looked at.
  mkdirSync(runPaths(places.stateDir, idFrom('run_3')).root)
  const isInUse = (runId: string) => runId === 'run_2'
  await removeLeftovers(leftovers, { places, log, isInUse, hasLeft: (hostId) => hostId !== 'h1' })
  expect(left()).toEqual([['run_2', 'run_3'], ['h1']])
})

test('with a run goes what its harness was given', async () => {
  const { places, left } = deviceWith({ runs: ['run_1'], hosts: ['h1', 'h2'] })
  await removeRunFolder(places, idFrom('run_1'), 'h1')
  expect(left()).toEqual([[], ['h2']])
})
