import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { changeSetIsRight, checkInvariants, outputOf } from '../kit/invariants.ts'
import { waitFor } from '../kit/programs.ts'
import { TestSystem } from '../kit/system.ts'
import { git, printedLines, scenario } from '../kit/system-scenario.ts'

/** The main job, on a real control plane, a real device and a real repository. */

let system: TestSystem
beforeAll(async () => {
  // So that a device soon notices that its server is back.
  system = await TestSystem.start({
    device: { isWalled: true },
    deviceEnv: { SVC_RECONNECT_MIN_MS: '100', SVC_RECONNECT_MAX_MS: '500' },
  })
})
afterAll(() => system?.stop())

describe('a run', () => {
  test('from the wake to its change-set, followed while it works, with a svc of its own, which acts as its agent', async () => {
    const changes = ['write=src/made.txt:hello', 'append=README.md:more', 'remove=.gitignore']
    const asks = ['run=svc run get current', 'run=svc agent get me']
    const run = await scenario(system, { steps: ['prompt', 'cwd', ...changes, 'lines=200', ...asks] })
    const runId = await run.start('Make it so.')
    const { events: followed } = await run.api.follow(runId)
    const { run: ended, events, output } = await checkInvariants(system, run, runId, { exitReason: 'completed' })
    expect(followed).toEqual(events)
    expect(output.toString()).toContain('prompt: Make it so.\r\n')
    expect(output.toString()).toContain(`cwd: ${run.folder}\r\n`)
    expect(output.toString()).toContain(printedLines(200))
    expect(output.toString()).toContain(runId)
    expect(output.toString()).toContain(run.agentId)
    expect(output.toString().match(/run exited 0/g)).toHaveLength(2)
    expect(ended).toMatchObject({ status: 'succeeded', exitReason: 'completed', triggerSource: 'manual' })
    expect(ended.environment).toMatchObject({ type: 'device', deviceLiveness: 'connected', cwd: 'repo-root' })

    const changeSet = await run.api.changeSet(runId)
    expect(changeSet).toMatchObject({ base: { commit: run.commit, branch: 'main' }, live: false })
    expect(changeSet.files.map(({ path, status }) => [path, status])).toEqual([
      ['.gitignore', 'deleted'],
      ['README.md', 'modified'],
      ['src/made.txt', 'added'],
    ])
    const numbers = git(run.folder, 'diff', '--shortstat', run.commit, '--', 'README.md', '.gitignore')
    expect(numbers).toMatch(/1 insertion\(\+\), 1 deletion/)
    expect([changeSet.additions, changeSet.deletions]).toEqual([2, 1])
    expect(git(run.folder, 'status', '--porcelain').split('\n').length, 'the index is untouched').toBe(3)
  })

  test('is followed across a broken stream, each event once, and shows what it changed while it works, told apart from what was there before', async () => {
    const run = await scenario(system, {
      steps: [
        'write=one.txt:1',
        'rate=300',
        'lines=300',
        'touch=GATES/one',
        'await=GATES/end',
        'write=two.txt:2',
        'lines=10',
      ],
    })
    git(run.folder, 'config', 'user.name', 'Somebody')
    const runId = await run.start()
    const leave = new AbortController()
    const first = await run.api.follow(runId, {
      signal: leave.signal,
      onEvent: ({ seq }) => void (seq >= 4 && leave.abort()),
    })
    await run.reached('one')
    const live = await run.api.changeSet(runId)
    expect(live).toMatchObject({ live: true, files: [{ path: 'one.txt', status: 'added', additions: 1 }] })
    changeSetIsRight(run.folder, live)
    run.open('end')
    const rest = await run.api.follow(runId, { lastEventId: first.lastEventId ?? '' })
    const all = [...first.events, ...rest.events]
    // On several pages.
    expect(all).toEqual(await run.api.events(runId, Math.ceil(all.length / 5)))
    await checkInvariants(system, run, runId, { exitReason: 'completed', output: printedLines(310) })
    expect((await run.api.changeSet(runId)).files.map(({ path }) => path)).toEqual(['one.txt', 'two.txt'])
  })

  test('that fails is retried: a new run that names the old one', async () => {
    const run = await scenario(system, { steps: ['lines=5', 'exit=3'] })
    const runId = await run.start()
    await checkInvariants(system, run, runId, { exitReason: 'error', output: printedLines(5) })
    const retryId = await run.api.retry(runId)
    expect(retryId).not.toBe(runId)
    await checkInvariants(system, run, retryId, { exitReason: 'error', output: printedLines(5) })
    expect(await run.api.run(retryId)).toMatchObject({ parentRunId: runId })
    expect(await run.api.run(runId)).toMatchObject({ successorRunId: retryId })
  })

  test('whose program is missing ends as harness_start_failed with a sentence that helps', async () => {
    const run = await scenario(system, { steps: [] })
    await run.api.call('PUT', `/agents/${run.agentId}/config`, {
      config: { runtime: { command: ['/no/such/program'] } },
    })
    const runId = await run.start()
    const { run: ended } = await checkInvariants(system, run, runId, { exitReason: 'harness_start_failed', starts: 0 })
    expect(ended.errorMessage).toContain('/no/such/program')
  })
})

describe('a control plane that is told to end', () => {
  test('sends its devices away to come again, and goes; runs do not notice', async () => {
    const run = await scenario(system, { steps: ['lines=50', 'touch=GATES/up', 'await=GATES/end', 'lines=50'] })
    const runId = await run.start()
    await run.reached('up')
    const isFollowed = Promise.withResolvers<void>()
    const followed = run.api.follow(runId, { onEvent: () => isFollowed.resolve() })
    await isFollowed.promise
    const endedAt = performance.now()
    expect(await system.server.end()).toEqual({ code: 0, signal: null })
    // Nothing is at work: the time for that, 25 s, is not waited out.
    expect(performance.now() - endedAt).toBeLessThan(20_000)
    // Its streams end; what they gave is kept.
    expect((await followed).events.length).toBeGreaterThan(0)
    await waitFor(async () => (await run.device.status()).link.state === 'connecting', 'the daemon looks for it')
    expect((await run.device.status()).link.lastError).toBeTruthy()
    expect(run.device.log).toContain('The server is restarting; connect again.')
    await system.server.start()
    await waitFor(async () => (await run.device.status()).link.state === 'connected', 'the daemon is back')
    run.open('end')
    const { events } = await checkInvariants(system, run, runId, { exitReason: 'completed', output: printedLines(100) })
    expect(outputOf(events).gapBytes).toBe(0)
  })
})
