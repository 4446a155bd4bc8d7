import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { DockerDouble, DoubleContainer } from '../../kit/docker-double.ts'
import { deviceIn, identityIn, playRun, runnerIn } from '../../kit/docker-double.ts'
import { loseOnce } from '../../kit/fake-runner.ts'
import { hasPostgres } from '../../kit/database.ts'
import { isLong } from '../../kit/forms.ts'
import { waitFor } from '../../kit/programs.ts'
import { cloudAgent, endings, stage, wake } from './keeper-kit.ts'

// Containers that are made ahead of the runs that they will have.

const completed = { exitReason: 'completed' }

const warmOf = (engine: DockerDouble): DoubleContainer[] =>
  [...engine.containers.values()].filter(({ name, state }) => name.startsWith('svc-warm-') && state === 'running')

/** Whose runner has not been told who it is. */
const waiting = (engine: DockerDouble) =>
  warmOf(engine).filter(({ folder }) => !existsSync(join(folder, 'identity.json')))

const whenWaiting = (engine: DockerDouble, count: number) =>
  waitFor(() => waiting(engine).length === count && waiting(engine), `${count} made ahead`, { ms: 30_000 })

const ready = async (server: { database: { root: unknown } }): Promise<number> =>
  ((await (server.database.root as (table: string) => Promise<{ state: string }[]>)('warm_sandboxes')) ?? []).filter(
    ({ state }) => state === 'ready',
  ).length

test('a run is given one, which knew nothing of it, and another one is made', async () => {
  const { engine, server } = await stage(playRun, { settings: { SVC_SANDBOX_WARM: '2' } })
  const before = await whenWaiting(engine, 2)
  await waitFor(async () => (await ready(server)) === 2, 'both ready')
  for (const { folder, labels } of before) {
    expect(readdirSync(folder)).toEqual(['waiting.json'])
    const said = JSON.parse(readFileSync(join(folder, 'waiting.json'), 'utf8')) as object
    expect(Object.keys(said).toSorted()).toEqual(
      ['deviceId', 'diskBytes', 'displayName', 'hostFolder', 'network', 'publicId', 'size'].toSorted(),
    )
    expect(Object.keys(labels).toSorted()).toEqual(['svc.sandbox', 'svc.server', 'svc.warm'])
  }
  const runId = await wake(server, (await cloudAgent(server, 'Quick')).id)
  expect(await endings(server, [runId])).toMatchObject([completed])
  const { sandbox } = (await server.ok(`/runs/${runId}`)) as { sandbox: { id: string; image: string } }
  expect(sandbox).toMatchObject({ id: before[0]!.labels['svc.sandbox'], image: engine.image })
  expect(engine.created.every((name) => name.startsWith('svc-warm-'))).toBe(true)
  await whenWaiting(engine, 2)
  // The first one went with its run, with its volume and its folder.
  await waitFor(() => engine.volumes.size === 2 && !existsSync(before[0]!.folder), 'nothing of the first one')
})

test('a run that needs another size has a container of its own, for which one that waits makes place', async () => {
  const settings = { SVC_SANDBOX_WARM: '2', SVC_SANDBOX_MAX: '2' }
  const { engine, server } = await stage(playRun, { settings })
  await whenWaiting(engine, 2)
  const agent = (await server.ok('/agents', {
    body: {
      name: 'Large',
      harness: 'command',
      environment: 'cloud',
      toolPermissionMode: 'full',
      command: 'true',
      sandboxSize: 'medium',
    },
  })) as { id: string }
  const runId = await wake(server, agent.id)
  expect(await endings(server, [runId])).toMatchObject([completed])
  expect(engine.created).toContain(`svc-${runId}-1`)
  expect(engine.peak).toBe(2)
})

test('fifty runs on an engine that takes four have never more containers with those made ahead, and all end', async () => {
  const settings = { SVC_SANDBOX_WARM: '3', SVC_SANDBOX_MAX: '4' }
  const { engine, server } = await stage(playRun, { settings })
  const agent = await cloudAgent(server, 'Many')
  const runIds: string[] = []
  for (let count = 0; count < (isLong ? 50 : 25); count++) runIds.push(await wake(server, agent.id))
  const ends = await endings(server, runIds)
  expect(new Set(ends.map(({ exitReason }) => exitReason))).toEqual(new Set(['completed']))
  expect(engine.peak).toBeLessThanOrEqual(4)
  await whenWaiting(engine, 3)
})

test('one that died is replaced, and one that died unseen costs its run nothing but time', async () => {
  const { engine, server } = await stage(playRun, { settings: { SVC_SANDBOX_WARM: '1' } })
  const [first] = await whenWaiting(engine, 1)
  engine.kill(first!)
  await waitFor(() => waiting(engine).length === 1 && !warmOf(engine).includes(first!), 'another one', { ms: 30_000 })
  await waitFor(async () => (await ready(server)) === 1, 'it is ready')
  const [second] = waiting(engine)
  // The engine tells nobody.
  Object.assign(second!, { state: 'exited', exitCode: 137 })
  const runId = await wake(server, (await cloudAgent(server, 'Lucky')).id)
  expect(await endings(server, [runId])).toMatchObject([completed])
  await waitFor(() => !engine.containers.has(second!.id), 'the dead one is gone')
})

test('what a run left in one is asked for as often as of any other, in the same container', async () => {
  const { play, salvages } = loseOnce({ dying: 2 }, { identityOf: identityIn, enter: deviceIn })
  const { engine, server } = await stage(play, { settings: { SVC_SANDBOX_WARM: '1' } })
  await waitFor(async () => (await ready(server)) === 1, 'it is ready')
  const [{ name }] = (await whenWaiting(engine, 1)) as [DoubleContainer]
  const runId = await wake(server, (await cloudAgent(server, 'Lost')).id)
  expect(await endings(server, [runId])).toMatchObject([{ exitReason: 'sandbox_lost' }])
  const { errorMessage } = (await server.ok(`/runs/${runId}`)) as { errorMessage: string }
  expect([errorMessage, salvages()]).toEqual(['The sandbox of this run ended with status 137.', 3])
  expect(engine.created.filter((each) => each === name)).toHaveLength(1)
})

test('those of an image that is another one by now go, and none is made of one that is gone', async () => {
  const { engine, server } = await stage(playRun, { settings: { SVC_SANDBOX_WARM: '1' } })
  const [old] = await whenWaiting(engine, 1)
  engine.image = `sha256:${'cd'.repeat(32)}`
  await waitFor(() => warmOf(engine).some(({ image }) => image === engine.image), 'one of the new image', {
    ms: 30_000,
  })
  expect(engine.containers.has(old!.id)).toBe(false)
  const runId = await wake(server, (await cloudAgent(server, 'New')).id)
  expect(await endings(server, [runId])).toMatchObject([completed])
  expect(await server.ok(`/runs/${runId}`)).toMatchObject({ sandbox: { image: engine.image } })
  engine.image = null
  await waitFor(() => engine.containers.size === 0, 'none is left', { ms: 30_000 })
})

test('an image whose runner does not wait is not tried again and again', async () => {
  const { engine } = await stage(async () => 1, { settings: { SVC_SANDBOX_WARM: '2' } })
  await waitFor(() => engine.created.length >= 4, 'tried again', { ms: 30_000 })
  const { length } = engine.created
  await new Promise((resolve) => setTimeout(resolve, 1_000))
  expect(engine.created.length - length).toBeLessThanOrEqual(2)
})

test('a server that stops takes them away', async () => {
  const { engine, server } = await stage(playRun, { settings: { SVC_SANDBOX_WARM: '3' } })
  await whenWaiting(engine, 3)
  await server.plane.stop()
  expect([engine.containers.size, engine.volumes.size]).toEqual([0, 0])
})

test.skipIf(!hasPostgres())('what a server left that died goes with the next one, which wants none', async () => {
  const settings = { SVC_SANDBOX_WARM: '2' }
  const { engine, server, startServer } = await stage(playRun, { database: 'postgres', settings })
  await whenWaiting(engine, 2)
  // It can take nothing away any more.
  engine.fault = () => 'cut'
  await server.plane.stop()
  engine.fault = () => null
  expect(engine.containers.size).toBe(2)
  const next = await startServer({ beside: server, settings: { SVC_SANDBOX_WARM: '0' } })
  next.world.advance(61_000)
  await waitFor(() => engine.containers.size === 0 && engine.volumes.size === 0, 'nothing', { ms: 30_000 })
})

test.skipIf(!hasPostgres())('a server that dies before it has told one who it is leaves that to the next', async () => {
  const settings = { SVC_SANDBOX_WARM: '1' }
  const { engine, server, startServer } = await stage(playRun, { database: 'postgres', settings })
  await whenWaiting(engine, 1)
  await waitFor(async () => (await ready(server)) === 1, 'it is ready')
  const agent = await cloudAgent(server, 'Half')
  // Rows are written, and what the engine has is not seen any more.
  engine.fault = (call) => (call.startsWith('GET /containers') ? 'cut' : null)
  const runId = await wake(server, agent.id)
  const taken = async () => {
    const [row] = (await server.database.root('sandboxes')) as { state: string; container: string | null }[]
    return row ?? null
  }
  expect(await waitFor(taken, 'it is taken')).toMatchObject({
    state: 'wanted',
    container: expect.stringMatching(/^svc-warm-/),
  })
  await server.plane.stop()
  engine.fault = () => null
  const next = await startServer({ beside: server })
  expect(await endings(next, [runId])).toMatchObject([completed])
  expect(engine.created.filter((name) => name.startsWith('svc-run_'))).toEqual([])
})

test.skipIf(!hasPostgres())('two replicas keep as many as one, and no two runs have the same', async () => {
  const taken: string[] = []
  const { engine, server, startServer } = await stage(
    async (container) => {
      await runnerIn(container).then(async (device) => {
        taken.push(container.name)
        const run = await device.take()
        await run.end()
        await device.disconnect()
      })
      return 0
    },
    { database: 'postgres', settings: { SVC_SANDBOX_WARM: '3', SVC_SANDBOX_MAX: '6' } },
  )
  const other = await startServer({ beside: server })
  await whenWaiting(engine, 3)
  const agent = await cloudAgent(server, 'Shared')
  const runIds: string[] = []
  for (let count = 0; count < 12; count++) runIds.push(await wake(count % 2 === 0 ? server : other, agent.id))
  const ends = await endings(server, runIds)
  expect(new Set(ends.map(({ exitReason }) => exitReason))).toEqual(new Set(['completed']))
  expect(new Set(taken).size).toBe(12)
  expect(engine.peak).toBeLessThanOrEqual(6)
  await whenWaiting(engine, 3)
})
