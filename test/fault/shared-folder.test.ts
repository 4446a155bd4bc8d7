import { mkdirSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { waitFor } from '../kit/programs.ts'
import { scenario, type Scenario } from '../kit/system-scenario.ts'
import { TestSystem } from '../kit/system.ts'

// Runs that work in one folder at the same time: their change-sets are mixed, and each names the others.

let system: TestSystem
beforeAll(async () => {
  system = await TestSystem.start()
})
afterAll(() => system?.stop())

const harness = resolve(import.meta.dirname, '../kit/fake-harness.mjs')

/** An agent of its own that works in this folder: it writes a file, says that it did, and waits for its gate. */
async function worker({ api, device, gates }: Scenario, name: string, rootPath: string) {
  const folder = await api.addFolder({ displayName: name, rootPath, deviceId: device.identity.publicId })
  const steps = [`write=${name}.txt:x`, `touch=${gates}/${name}-up`, `await=${gates}/${name}-end`]
  const command = [process.execPath, harness, ...steps]
  const agent = await api.createAgent({ name, harness: 'command', defaultFolderId: folder.shortId, command })
  return { start: () => api.startRun(agent.id) }
}

/** The runs that the log of this one names, in their order. */
const toldIn = async ({ api }: Scenario, runId: string) =>
  (await api.events(runId))
    .filter(({ kind }) => kind === 'folder_shared')
    .flatMap(({ data }) => data['runIds'] as string[])

/** Waits until the log tells of so many, and says whom it names. */
async function told(at: Scenario, runId: string, others: readonly string[]): Promise<void> {
  const names = await waitFor(
    async () => {
      const found = await toldIn(at, runId)
      return found.length >= others.length ? found : null
    },
    `${runId} is told of ${others.length}`,
    { about: () => at.device.log },
  )
  expect(names.toSorted(), runId).toEqual(others.toSorted())
}

test('each names those that worked there meanwhile, by whatever path and over a kill -9 of the daemon and of a run host', async () => {
  const first = await scenario(system, { steps: ['write=first.txt:x', 'touch=GATES/up', 'await=GATES/end'] })
  const { api, folder, device } = first
  mkdirSync(join(folder, 'sub'))
  const link = join(system.root, 'link')
  symlinkSync(folder, link)
  const [inSub, byLink, elsewhere, later] = [
    await worker(first, 'in-sub', join(link, 'sub')),
    await worker(first, 'by-link', link),
    // Its name begins with that of the folder, and it is another one.
    await worker(first, 'elsewhere', (await scenario(system, { steps: [] })).folder),
    await worker(first, 'later', folder),
  ]
  const run = await first.start()
  await first.reached('up')
  const far = await elsewhere.start()
  await first.reached('elsewhere-up')
  expect(await toldIn(first, run)).toEqual([])

  const sub = await inSub.start()
  await first.reached('in-sub-up')
  await Promise.all([told(first, run, [sub]), told(first, sub, [run])])
  // While they work the daemon dies, and the next one knows what the last one knew.
  await device.kill9()
  await device.start()
  const linked = await byLink.start()
  await first.reached('by-link-up')
  await Promise.all([told(first, run, [sub, linked]), told(first, sub, [run, linked]), told(first, linked, [run, sub])])
  const live = await api.changeSet(linked)
  expect([live.live, live.sharedWith.toSorted()]).toEqual([true, [run, sub].toSorted()])

  // Of one whose host is killed the daemon makes the change-set.
  process.kill((await device.hostOf(sub)).pid, 'SIGKILL')
  await api.waitForRun(sub, 'failed')
  expect((await api.changeSet(sub)).sharedWith.toSorted()).toEqual([run, linked].toSorted())
  first.open('end')
  await api.waitForRun(run, 'succeeded')
  const after = await later.start()
  await first.reached('later-up')
  for (const gate of ['later-end', 'by-link-end', 'elsewhere-end']) first.open(gate)
  for (const each of [after, linked, far]) await api.waitForRun(each, 'succeeded')
  const sharers = async (runId: string) => (await api.changeSet(runId)).sharedWith
  expect((await sharers(run)).toSorted()).toEqual([sub, linked].toSorted())
  expect((await sharers(linked)).toSorted()).toEqual([run, sub, after].toSorted())
  expect(await sharers(after)).toEqual([linked])
  expect(await sharers(far)).toEqual([])
  expect(await toldIn(first, far)).toEqual([])
  // What they changed is indeed mixed.
  expect((await api.changeSet(run)).files.map(({ path }) => path)).toEqual([
    'by-link.txt',
    'first.txt',
    'sub/in-sub.txt',
  ])
})
