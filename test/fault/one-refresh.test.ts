import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Exchange } from '../kit/provider.ts'
import { hasPostgres } from '../kit/database.ts'
import { isLong, repeats } from '../kit/forms.ts'
import { delay, seededRandom, waitFor } from '../kit/programs.ts'
import { RefreshStage } from './one-refresh-stage.ts'

// One connection for 50 runs on three devices, while replicas, daemons and run hosts are killed: each refresh token is used once, and
// nobody signs in anew. One thing excuses a new sign-in: a replica was killed between the answer of the provider and its commit,
// since nobody else has that answer. These are counted and printed. `REFRESH_S` sets how long.

const seconds = repeats('REFRESH_S', { short: 36, long: 1_800 })
/** One that is refused within ten seconds is not renewed again. */
const tokenS = isLong ? 60 : 12
const runs = 50
/** At most 30 of them at once, so 50 are done in two turns. */
const calling = { everyMs: 2_000, forMs: (seconds * 1_000) / 2 }
/** In such a time a token ends, and is needed after that. */
const renewingMs = 1_500 * tokenS
/** A token is renewed within so long, also when the claim of who was killed must end before. */
const renewedMs = 2_000 * tokenS + 60_000
/** A stored answer is there so soon. */
const storedMs = 1_000

let stage: RefreshStage
describe.skipIf(!hasPostgres())('one refresh for everything', () => {
  beforeAll(async () => {
    stage = await RefreshStage.start({ tokenS })
  })
  afterAll(() => stage?.stop())

  test('replicas that are told to end during a renewal store what comes', { timeout: 60_000 + renewedMs }, async () => {
    const { provider, system } = stage
    const runId = await stage.wake(0, { everyMs: 500, forMs: tokenS * 1_000 })
    const { version } = await stage.connection()
    await told(async () => {
      for (const server of system.servers) server.program.signal('SIGTERM')
      await delay(1_000)
    })
    for (const server of system.servers) expect(await server.program.exit(30_000)).toEqual({ code: 0, signal: null })
    expect(await stage.connection()).toMatchObject({ status: 'active', version: version + 1 })
    await Promise.all(system.servers.map((server) => server.start()))
    expect((await stage.untilEnded(runId, 60_000)).exitReason).toBe('completed')
    expect(refusedIn(provider.exchanges)).toEqual([])
  })

  test(`${runs} runs and ${seconds} s of kills`, { timeout: (seconds * 2 + 300) * 1_000 + renewedMs }, async () => {
    const random = seededRandom('one refresh')
    const { provider, system, balancer } = stage
    const counts: Record<string, number> = {}
    const killedReplicas: number[] = []
    const killedRuns = new Set<string>()
    const kill = async (after: () => Promise<void> = () => delay(random() * 500)) => {
      const server = anyOf(system.servers, random)
      killedReplicas.push(performance.now())
      await server.kill9()
      await after()
      return server
    }
    const started: string[] = []
    for (let count = 0; count < runs; count++) started.push(await stage.wake(count, calling))
    /** Where the others have ended nobody would need a token. */
    const haveOneCall = async () =>
      void started.push(await stage.wake(started.length, { ...calling, forMs: renewingMs }))
    const faults: Record<string, () => Promise<void>> = {
      replica: async () => (await kill()).start(),
      // Where the replica lives that asked, its request is broken off.
      async unread() {
        await haveOneCall()
        let killed: Awaited<ReturnType<typeof kill>> | undefined
        await asked(async () => void (killed = await kill(() => Promise.resolve())))
        await killed?.start()
      },
      async stored() {
        await haveOneCall()
        const { version } = await stage.connection()
        await waitFor(async () => (await stage.connection()).version !== version, 'a token is stored', {
          ms: renewedMs,
          everyMs: 5,
        })
        await (await kill()).start()
      },
      async ended() {
        await haveOneCall()
        const server = anyOf(system.servers, random)
        await told(async () => {
          server.program.signal('SIGTERM')
          await delay(random() * 500)
        })
        expect(await server.program.exit(30_000)).toEqual({ code: 0, signal: null })
        await server.start()
      },
      async daemon() {
        const device = anyOf(system.devices, random)
        await device.kill9()
        await delay(random() * 500)
        device.launch()
      },
      async host() {
        const hosts = stage.hosts()
        if (hosts.length === 0) return
        const { pid, runId } = anyOf(hosts, random)
        process.kill(pid, 'SIGKILL')
        killedRuns.add(runId)
        started.push(await stage.wake(started.length, { ...calling, forMs: calling.forMs / 4 }))
      },
      async cut() {
        balancer.proxy.cut()
        await delay(random() * 800)
        balancer.proxy.heal()
      },
    }
    const until = performance.now() + seconds * 1_000
    let signIns = 0
    const watching = (async () => {
      for (let isOver = false; !isOver; await delay(500)) {
        isOver = performance.now() > until
        const { status, statusReason } = await stage.connection()
        if (status === 'active') continue
        process.stderr.write(`one refresh: ${status}: ${statusReason}\n`)
        signIns++
        await stage.signIn()
      }
    })()
    const drawn = <Name>(names: readonly Name[]) => [...names].sort(() => random() - 0.5)
    const names = Object.keys(faults)
    // Each at least once: those first that wait for a renewal, and of them last the one whose claim lasts for half a minute.
    const first = [...drawn(['stored', 'ended']), 'unread', ...drawn(['replica', 'daemon', 'host', 'cut'])]
    while (performance.now() < until) {
      const name = first.shift() ?? anyOf(names, random)
      counts[name] = (counts[name] ?? 0) + 1
      await faults[name]!()
      await delay(random() * 1_500)
    }
    await watching
    expect(stage.filesWithTokens()).toEqual([])
    const calls = { count: 0, failures: [] as string[] }
    for (const runId of started) {
      const { exitReason } = await stage.untilEnded(runId, 180_000)
      if (killedRuns.has(runId)) continue
      expect(exitReason, runId).toBe('completed')
      const result = (await system.api.events(runId)).find(({ kind }) => kind === 'result')
      const said = JSON.parse(String(result?.data['text'])) as typeof calls
      calls.count += said.count
      calls.failures.push(...said.failures)
    }
    const { exchanges } = provider
    const refused = refusedIn(exchanges)
    const excused = lostIn(exchanges).filter(({ at }) =>
      killedReplicas.some((killedAt) => killedAt >= at && killedAt <= at + storedMs),
    )
    const renewed = exchanges.filter(({ refreshToken, given }) => refreshToken !== null && given.length > 0)
    const figures = [
      `${started.length} runs, ${killedRuns.size} hosts killed`,
      `${calls.count} calls, ${calls.failures.length} failed, ${stage.refused} refused`,
      `${renewed.length} renewals, ${lostIn(exchanges).length} answers lost by kills, ${signIns} sign-ins`,
      JSON.stringify(counts),
    ]
    process.stderr.write(`one refresh: ${figures.join('; ')}\n${[...new Set(calls.failures)].join('\n')}\n`)
    expect(lostIn(exchanges)).toEqual(excused)
    expect(refused.length).toBe(excused.length)
    expect(signIns).toBe(excused.length)
    if (excused.length === 0) expect(calls.failures.filter((each) => each.includes('signs in anew'))).toEqual([])
    expect((await stage.connection()).status).toBe('active')
    expect(stage.filesWithTokens()).toEqual([])
  })
})

const anyOf = <Value>(values: readonly Value[], random: () => number): Value =>
  values[Math.floor(random() * values.length)]!

/** Does that once, when the provider has the next request for a token, which it then never reads. */
const asked = (act: () => Promise<void>) => onNextToken('asked', act)
/** The same when it has given new tokens, before the answer leaves. */
const told = (act: () => Promise<void>) => onNextToken('done', act)

async function onNextToken(wanted: 'asked' | 'done', act: () => Promise<void>): Promise<void> {
  const { provider } = stage
  await new Promise<void>((resolve, reject) => {
    const late = setTimeout(() => reject(new Error('nobody asked the provider for a token')), renewedMs)
    provider.onToken = async (moment) => {
      if (moment !== wanted) return
      clearTimeout(late)
      provider.onToken = () => undefined
      await act().then(resolve, reject)
      return wanted === 'asked' ? 'drop' : undefined
    }
  })
}

/** Requests that the provider refused: their token had been used, or its family was revoked. */
const refusedIn = (exchanges: readonly Exchange[]): Exchange[] => exchanges.filter(({ given }) => given.length === 0)

/** Exchanges by which a refresh token was used that came once more. */
function lostIn(exchanges: readonly Exchange[]): Exchange[] {
  const again = (refreshToken: string, from: number) =>
    exchanges.slice(from + 1).some((later) => later.refreshToken === refreshToken)
  return exchanges.filter(
    ({ refreshToken, given }, at) => refreshToken !== null && given.length > 0 && again(refreshToken, at),
  )
}
