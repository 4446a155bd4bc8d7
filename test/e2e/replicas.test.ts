import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkInvariants } from '../kit/invariants.ts'
import { hasPostgres, openPostgres, type PostgresDatabase } from '../kit/database.ts'
import { isLong, repeats } from '../kit/forms.ts'
import { waitFor } from '../kit/programs.ts'
import { shortDurations, TestSystem } from '../kit/system.ts'
import { printedLines, scenario } from '../kit/system-scenario.ts'

// Three replicas of the control plane on one PostgreSQL. The durations of the link are a tenth of the real ones.

describe.skipIf(!hasPostgres())('several replicas', () => {
  let database: PostgresDatabase
  let system: TestSystem
  beforeAll(async () => {
    database = await openPostgres()
    system = await TestSystem.start({
      ...shortDurations(10),
      replicas: 3,
      databaseUrl: database.url,
      withProxy: true,
    })
  })
  afterAll(async () => {
    await system?.stop()
    await database.close()
  })
  const connected = () =>
    waitFor(async () => (await system.device.status()).link.state === 'connected', 'the device is linked')

  test('a device linked to the first, a run started on the second, followed and cancelled on the third', async () => {
    const [, second, third] = system.servers
    const run = await scenario(system, { steps: ['lines=100', 'write=made.txt:x', 'touch=GATES/up', 'forever'] })
    const runId = await second!.api.startRun(run.agentId)
    const followed = third!.api.follow(runId)
    await run.reached('up')
    // Asked of the device through two replicas.
    expect(await third!.api.changeSet(runId)).toMatchObject({ live: true, files: [{ path: 'made.txt' }] })
    expect(await second!.metric('svc_links')).toBe(0)
    await third!.api.cancel(runId)
    const { events } = await checkInvariants(system, run, runId, {
      exitReason: 'interrupted',
      output: printedLines(100),
    })
    expect((await followed).events).toEqual(events)
    expect(await second!.api.events(runId)).toEqual(events)
  })

  test('wakes by several replicas at once start each run once', async () => {
    const wakes = repeats('REPLICA_WAKES', { short: 3, long: 6 })
    const run = await scenario(system, { steps: ['lines=20'] })
    const started = await Promise.all(
      Array.from({ length: wakes }, (_, index) => system.servers[index % 3]!.api.startRun(run.agentId)),
    )
    const output = printedLines(20)
    for (const runId of started) await run.api.waitForRun(runId, 'succeeded')
    expect(run.starts()).toBe(wakes)
    for (const runId of started) await checkInvariants(system, run, runId, { exitReason: 'completed', output })
  })

  test('the replica that holds the link is killed: the device goes to another, and its run with it', async () => {
    const [first, second, third] = system.servers
    const run = await scenario(system, {
      steps: ['lines=100', 'touch=GATES/up', 'await=GATES/end', 'lines=100'],
      api: second!.api,
    })
    const runId = await run.start()
    await run.reached('up')
    system.routeTo(third!)
    await first!.kill9()
    await waitFor(async () => (await third!.metric('svc_links')) === 1, 'the third replica has the link')
    run.open('end')
    await checkInvariants(system, run, runId, { exitReason: 'completed', output: printedLines(200) })
    await first!.start()
  })

  // One that is told to end sends its devices away also where there is no other (story.test.ts).
  if (isLong)
    test('the replica that holds the link is told to end: the same, without an error', async () => {
      const [first, second, third] = system.servers
      const run = await scenario(system, {
        steps: ['lines=100', 'touch=GATES/up', 'await=GATES/end', 'lines=100'],
        api: second!.api,
      })
      await connected()
      const runId = await run.start()
      await run.reached('up')
      system.routeTo(first!)
      expect(await third!.end()).toEqual({ code: 0, signal: null })
      await waitFor(async () => (await first!.metric('svc_links')) === 1, 'the first replica has the link')
      run.open('end')
      await checkInvariants(system, run, runId, { exitReason: 'completed', output: printedLines(200) })
      await third!.start()
    })
})
