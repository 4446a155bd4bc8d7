import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hasPostgres, openPostgres, type PostgresDatabase } from '../kit/database.ts'
import { repeats } from '../kit/forms.ts'
import { delay, seededRandom, waitFor } from '../kit/programs.ts'
import { checkRun, nothingLeft, startStage, type Stage, Witness } from '../kit/sandbox-walk.ts'
import { hasNoEngine } from '../kit/sandboxes.ts'

// Whatever is killed with -9, and when: each run ends once, nothing of it is lost that is not told as lost, and nothing is left on the
// engine. `SANDBOX_KILLS` sets how often; each time hits a run with a repository and one without.

const kinds = ['container', 'engine', 'runner', 'server', 'replica'] as const
type Kind = (typeof kinds)[number]
const kills = repeats('SANDBOX_KILLS', { short: 1, long: 50 })
/** From the wake to somewhat after the end of an undisturbed run. */
const lifeMs = 7_000
const longestDownMs = 2_000
/** The part of the walks in which something else is killed while the first loss is dealt with. */
const secondKills = 0.3

let database: PostgresDatabase
let stage: Stage

describe.skipIf(hasNoEngine || !hasPostgres())('kill -9', () => {
  beforeAll(async () => {
    database = await openPostgres()
    stage = await startStage(database.url)
  })
  afterAll(async () => {
    await stage?.close()
    await database?.close()
  })

  // `checkRun` says how long an ending may take; this is far more than all of them take together.
  test(`${kills} times at random points of cloud runs`, { timeout: 360_000 + kills * 60_000 }, async () => {
    const random = seededRandom('kills of sandboxes')
    const draw = <Of>(from: readonly Of[]) => from[Math.floor(random() * from.length)]!
    const failures: unknown[] = []
    const first = Math.floor(random() * kinds.length)
    for (let walk = 0; walk < kills; walk++) {
      const kind = kinds[(first + walk) % kinds.length]!
      const isReplicated = kind === 'replica' || (kind !== 'server' && random() < 0.5)
      const moments = [random() * lifeMs, ...(random() < secondKills ? [random() * 2_000] : [])]
      const others = kinds.filter((other) => (isReplicated ? other !== 'server' : other !== 'replica'))
      const victims = moments.map((ms, at): Victim => {
        const [which, downMs] = [Math.floor(random() * 2), random() * longestDownMs]
        return { kind: at === 0 ? kind : draw(others), ms, which, downMs }
      })
      const told = victims.map((victim) => `${victim.kind} ${victim.which} after ${Math.round(victim.ms)} ms`)
      const ends = await walkOnce(isReplicated, victims).catch((error: unknown) => {
        failures.push(error)
        return [`FAILED: ${String(error)}`]
      })
      const where = isReplicated ? 'two replicas' : 'one server'
      process.stderr.write(`${walk}: ${where}, ${told.join(', then ')}: ${ends.join('; ')}\n`)
    }
    expect(failures).toEqual([])
  })
})

interface Victim {
  kind: Kind
  /** After the one before. */
  ms: number
  /** Of two: which run's sandbox, or which replica. */
  which: number
  /** How long an engine or a server is away. */
  downMs: number
}

async function walkOnce(isReplicated: boolean, victims: readonly Victim[]): Promise<string[]> {
  const { engine, git } = stage
  const { system, plain, withRepo } = isReplicated ? stage.replicas : stage.alone
  // One that failed may have left them dead.
  for (const server of system.servers) if (!server.isRunning) await server.start()
  const { api } = system
  const witnesses: Witness[] = []
  for (const agentId of [plain, withRepo]) witnesses.push(new Witness(engine, await api.startRun(agentId)))
  let killedAt = Number.POSITIVE_INFINITY
  for (const { kind, ms, which, downMs } of victims) {
    await delay(ms)
    killedAt = Math.min(killedAt, performance.now())
    if (kind === 'container' || kind === 'runner') await killIn(witnesses[which]!.runId, kind)
    else {
      const victim = kind === 'engine' ? engine : system.servers[isReplicated ? which : 0]!
      await victim.kill9()
      if (kind === 'replica') continue
      await delay(downMs)
      await victim.start()
    }
  }
  const alive = system.servers.find(({ isRunning }) => isRunning)
  // Two replicas may be dead then.
  if (alive === undefined) await system.server.start()
  const { api: asked } = alive ?? system.server
  const ends: string[] = []
  for (const [at, witness] of witnesses.entries())
    ends.push(await checkRun(asked, { witness, repo: at === 0 ? null : git.repo, killedAt }))
  await nothingLeft(engine, system.servers)
  return ends
}

/** Kills the first process of the sandbox of a run, or its runner; nothing where it has none any more. */
async function killIn(runId: string, kind: 'container' | 'runner'): Promise<void> {
  const { engine, alone, replicas } = stage
  const apis = [alone, replicas]
    .flatMap(({ system }) => system.servers.filter(({ isRunning }) => isRunning))
    .map(({ api }) => api)
  const find = async () => {
    const ids = await engine.docker('ps', '--quiet', '--filter', `name=svc-${runId}`)
    if (ids !== '') return Number(await engine.docker('inspect', '--format', '{{.State.Pid}}', ids.split('\n')[0]!))
    for (const api of apis) {
      const reply = await api.raw('GET', `/runs/${runId}`)
      if (reply.status === 200 && (reply.body as { completedAt: string | null }).completedAt !== null) return -1
    }
    return null
  }
  const first = await waitFor(find, `a sandbox of ${runId}`)
  if (first <= 0) return
  const childrenOf = (pid: number) => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')
  try {
    process.kill(kind === 'container' ? first : Number(childrenOf(first)[0] || first), 'SIGKILL')
  } catch {
    // It left by itself.
  }
}
