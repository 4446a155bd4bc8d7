import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { runnerStatus } from '../../../shared/device/sandbox.ts'
import { sandboxPlaces } from '../../../shared/runs/sandbox-places.ts'
import { deviceIn, identityIn, playRun, runnerIn, type Fault } from '../../kit/docker-double.ts'
import { loseOnce } from '../../kit/fake-runner.ts'
import { hasPostgres } from '../../kit/database.ts'
import { seededRandom, waitFor } from '../../kit/programs.ts'
import { checkCycles, cycles, cyclesMs, livesOf } from '../../kit/sandbox-cycles.ts'
import { cloudAgent, endings, hasNothingOfRuns, stage, statusOf, wake } from './keeper-kit.ts'

interface Made {
  run_id: string
  created_at: number | string
}

test('as many as may be there at once, the oldest first, and all come to their end', async () => {
  const { engine, server } = await stage(playRun, { settings: { SVC_SANDBOX_MAX: '4' } })
  const agent = await cloudAgent(server, 'Many')
  const runIds: string[] = []
  for (let count = 0; count < 20; count++) runIds.push(await wake(server, agent.id))
  const ends = await endings(server, runIds)
  expect(new Set(ends.map(({ exitReason }) => exitReason))).toEqual(new Set(['completed']))
  expect(engine.peak).toBe(4)
  const rows = (await server.database.root('sandboxes').select('run_id', 'created_at')) as Made[]
  const madeAt = new Map(rows.map((row) => [row.run_id, Number(row.created_at)]))
  const times = runIds.map((id) => madeAt.get(id)!)
  expect(times).toEqual(times.toSorted((a, b) => a - b))
})

test('any number of runs that wait for a device hold up none of the cloud', async () => {
  const { server } = await stage(playRun)
  const { id } = await server.createAgent({ command: 'true' })
  const waiting = await wake(server, id)
  const runs = () => server.database.root('runs')
  const row = (await runs().where({ id: waiting }).first()) as object
  const at = 1_700_000_000_000
  const copies = Array.from({ length: 1_100 }, (_, n) => ({ ...row, id: server.world.id('run_'), created_at: at + n }))
  for (let from = 0; from < copies.length; from += 100) await runs().insert(copies.slice(from, from + 100))
  const runId = await wake(server, (await cloudAgent(server, 'Behind')).id)
  expect(await endings(server, [runId])).toMatchObject([{ exitReason: 'completed' }])
})

test('a volume that a server had no time to remove, or whose workspace is gone, goes', async () => {
  const { engine, server, startServer } = await stage(playRun)
  const agent = await cloudAgent(server, 'Tidy')
  expect(await endings(server, [await wake(server, agent.id)])).toMatchObject([{ exitReason: 'completed' }])
  engine.volumes.add('svc-run_0000000000000000-1')
  // The next one looks for them as soon as it is there.
  await startServer({ beside: server })
  await waitFor(() => engine.volumes.size === 0, 'an engine without volumes')
})

test('a run waits while no engine answers, and says so', async () => {
  const { engine, server } = await stage(playRun)
  const agent = await cloudAgent(server, 'Patient')
  await waitFor(async () => (await endings(server, [await wake(server, agent.id)]))[0], 'a first run')
  engine.fault = () => 'cut'
  server.world.advance(120_000)
  const runId = await wake(server, agent.id)
  expect(await server.ok(`/runs/${runId}`)).toMatchObject({
    gateReason: 'no_ready_route',
    gateDescription: expect.stringContaining('No engine for sandboxes'),
  })
  engine.fault = () => null
  expect(await endings(server, [runId])).toMatchObject([{ exitReason: 'completed' }])
})

test('a container that the engine had half started when it was killed is made again', async () => {
  const { engine, server } = await stage(playRun)
  engine.fault = (call) => {
    const [, id] = /^POST \/containers\/(\w+)\/start$/.exec(call) ?? []
    if (id !== undefined && engine.created.length === 1) engine.containers.get(id)!.isHalfStarted = true
    return null
  }
  const runId = await wake(server, (await cloudAgent(server, 'Half')).id)
  expect(await endings(server, [runId])).toMatchObject([{ exitReason: 'completed' }])
  expect(engine.created).toHaveLength(2)
})

test.each([
  [2, /^The sandbox of this run ended with status 137\.$/, 3],
  [9, /^The sandbox of this run ended with status 137\. What it had not sent is lost\.$/, 3],
])(
  'where %i of those die that are to tell what a run left, others are tried, three in all',
  async (dying, message, tried) => {
    const { play, salvages } = loseOnce({ dying }, { identityOf: identityIn, enter: deviceIn })
    const { server } = await stage(play)
    const runId = await wake(server, (await cloudAgent(server, 'Lost')).id)
    expect(await endings(server, [runId])).toMatchObject([{ exitReason: 'sandbox_lost' }])
    const { errorMessage } = (await server.ok(`/runs/${runId}`)) as { errorMessage: string }
    expect([errorMessage, salvages()]).toEqual([expect.stringMatching(message), tried])
  },
)

test('one that has nothing to tell is not tried again', async () => {
  let begun = 0
  const { server } = await stage(async (container) => {
    begun++
    if ((await identityIn(container)).lost !== undefined) return runnerStatus.noRun
    const device = await deviceIn(container)
    await (await device.take()).events({ kind: 'text', data: { text: 'here' } })
    await device.disconnect()
    return 137
  })
  const runId = await wake(server, (await cloudAgent(server, 'Bare')).id)
  expect(await endings(server, [runId])).toMatchObject([{ exitReason: 'sandbox_lost' }])
  expect(begun).toBe(2)
})

test.each([0, 3])(
  `whatever the engine does with calls and answers, each of ${cycles} runs ends once and nothing is left (%i made ahead)`,
  { timeout: cyclesMs + 60_000 },
  async (warm) => {
    const random = seededRandom('cycles of containers')
    const faults: readonly Fault[] = ['lost', 'cut', 'garbage', 500, 503, 429, 409]
    const play = livesOf(random, { identityOf: identityIn, enter: deviceIn })
    const settings = { SVC_SANDBOX_MAX: '8', ...(warm > 0 && { SVC_SANDBOX_WARM: String(warm) }) }
    const { engine, server } = await stage(play, { settings })
    engine.fault = () => (random() < 0.15 ? faults[Math.floor(random() * faults.length)]! : null)
    const { id } = await cloudAgent(server, 'Unlucky')
    await checkCycles(server, { wake: () => wake(server, id), isEmpty: () => hasNothingOfRuns(engine) })
  },
)

test.skipIf(!hasPostgres())('another replica goes on with the sandboxes of one that is gone', async () => {
  const go = Promise.withResolvers<void>()
  const { engine, server, startServer } = await stage(
    async (container) => {
      const device = await runnerIn(container)
      const run = await device.take()
      await run.events({ kind: 'text', data: { text: 'before' } })
      await go.promise
      await device.closed
      await waitFor(() => isHeard(join(container.folder, sandboxPlaces.socket)), 'the broker of the other replica')
      return 0
    },
    { database: 'postgres' },
  )
  const agent = await cloudAgent(server, 'Lasting')
  const runId = await wake(server, agent.id)
  await waitFor(async () => (await statusOf(server, runId)).status === 'running', 'the run')
  // Not before: the sandbox is to be one whose broker goes with its server.
  const other = await startServer({ beside: server })
  await server.plane.stop()
  go.resolve()
  expect(await endings(other, [runId])).toMatchObject([{ exitReason: 'sandbox_lost' }])
  expect(engine.created).toHaveLength(1)
})

describe.skipIf(!hasPostgres())('a replica of which another one made the container', () => {
  test.each([
    ['tells it who it is in the folder that it has', { reaches: true, containers: 1 }],
    ['makes another one where it does not reach that folder', { reaches: false, containers: 2 }],
  ])('%s', async (_, { reaches, containers }) => {
    const { play, salvages } = loseOnce({ dying: 0 }, { identityOf: identityIn, enter: deviceIn })
    const isLost = Promise.withResolvers<void>()
    const go = Promise.withResolvers<void>()
    const { engine, server, startServer, data } = await stage(
      async (container) => {
        const exitCode = await play(container)
        isLost.resolve()
        await go.promise
        return exitCode
      },
      { database: 'postgres' },
    )
    const agent = await cloudAgent(server, 'Lasting')
    const runId = await wake(server, agent.id)
    await isLost.promise
    const own = mkdtempSync(join(tmpdir(), 'svc-k-'))
    onTestFinished(() => rmSync(own, { recursive: true, force: true }))
    const other = await startServer({
      beside: server,
      settings: { SVC_DATA_DIR: own, SVC_FILES_URL: pathToFileURL(join(data, 'files')).href },
    })
    await server.plane.stop()
    const [container] = engine.containers.values()
    await waitFor(() => isHeard(join(container!.folder, sandboxPlaces.socket)), 'the broker of the other replica')
    // Whatever it has there now is of no use to the next container.
    if (!reaches) rmSync(join(data, 'sandboxes'), { recursive: true })
    go.resolve()
    expect(await endings(other, [runId])).toMatchObject([{ exitReason: 'sandbox_lost' }])
    expect(salvages()).toBe(1)
    expect(engine.created).toHaveLength(containers)
    const events = (await other.ok(`/runs/${runId}/events`)) as { data: { kind: string }[] }
    expect(events.data.map(({ kind }) => kind)).toContain('text')
  })
})

const isHeard = (socket: string) =>
  new Promise<boolean>((resolve) => {
    const asked = connect(socket, () => resolve(true))
    asked.once('error', () => resolve(false))
    asked.once('connect', () => asked.destroy())
  })
