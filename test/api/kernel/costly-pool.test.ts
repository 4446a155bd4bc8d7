import { afterEach, expect, test } from 'vitest'
import { CostlyPool } from '../../../control-plane/costly/pool.ts'
import type { PoolLimits } from '../../../control-plane/process/worker-pool.ts'
import { silentLog } from '../../../control-plane/process/log.ts'
import { realWorld, type World } from '../../../shared/lib/world.ts'

// Real workers, given work that would never end.

let pool: CostlyPool | null = null
afterEach(() => pool?.stop())

const start = (limits: Partial<PoolLimits>, world: World = realWorld) =>
  (pool = new CostlyPool({
    world,
    log: silentLog,
    limits: { workers: 1, longestMs: 60_000, waitMs: 60_000, ...limits },
  }))

const owner = (workspaceId: string, caller = workspaceId) => ({ workspaceId, caller, bytes: 100 })
const quick = JSON.stringify({ schema: { type: 'string' }, data: 1 })
const endless = JSON.stringify({ schema: { pattern: '^(a+)+$' }, data: `${'a'.repeat(60)}!` })
const misfit = { kind: 'done', value: { path: 'data', message: 'must be string' } }

const refusalOf = (work: Promise<unknown>) => work.then(String, (error: { code: string }) => error.code)

test('work that does not end is ended, and what waits behind it is done', async () => {
  const { run } = bound(start({ jobMs: 500 }))
  const [first, second, third] = await Promise.all([
    run('schemas.misfit', endless, owner('a')),
    run('schemas.misfit', quick, owner('b')),
    run('schemas.misfit', quick, owner('a')),
  ])
  expect(first).toEqual({ kind: 'gave_up', why: 'time' })
  expect([second, third]).toEqual([misfit, misfit])
})

/** Its timers end a hundred times too early, as they seem to on a machine that is short of processors. */
const hurried = { ...realWorld, after: (ms: number, then: () => void) => realWorld.after(ms / 100, then) }

test('work that only waited for a processor is done, and refused where there is none for too long', async () => {
  const patient = { jobMs: 2_000, longestMs: 10_000_000, waitMs: 10_000_000, idleMs: 10_000_000 }
  const { run } = bound(start(patient, hurried))
  for (let at = 0; at < 20; at++) expect(await run('schemas.misfit', quick, owner('a'))).toEqual(misfit)
  await pool!.stop()
  const hasty = bound(start({ ...patient, longestMs: 100_000 }, hurried))
  expect(await refusalOf(hasty.run('schemas.misfit', endless, owner('a')))).toBe('rate_limit_exceeded')
  expect(await hasty.run('schemas.misfit', quick, owner('a'))).toEqual(misfit)
})

test('work that takes more memory than it may ends its worker, not the server', async () => {
  const { run } = bound(start({ heapMb: 24, jobMs: 60_000 }))
  // Compiled, each of these holds a function and its text.
  const properties = Object.fromEntries(Array.from({ length: 4_000 }, (_, at) => [`p${at}`, { $ref: '#/$defs/d' }]))
  const schema = { properties, $defs: { d: { type: 'string' } }, patternProperties: { '^(?:a|b)*$': { enum: [1] } } }
  const large = JSON.stringify({ schema, data: Array.from({ length: 400_000 }, (_, at) => ({ at })) })
  expect(await run('schemas.misfit', large, owner('a'))).toEqual({ kind: 'gave_up', why: 'memory' })
  expect(await run('schemas.misfit', quick, owner('a'))).toEqual(misfit)
})

test('a workspace that asks for much waits for itself: others come in between', async () => {
  const { run } = bound(start({ jobMs: 400 }))
  const order: string[] = []
  const note = (name: string, text: string, workspace: string) =>
    run('schemas.misfit', text, owner(workspace)).then(() => order.push(name))
  await Promise.all([
    ...Array.from({ length: 2 }, (_, at) => note(`greedy ${at}`, endless, 'greedy')),
    note('other', quick, 'other'),
  ])
  expect(order.indexOf('other')).toBeLessThanOrEqual(1)
  expect(order).toHaveLength(3)
})

test('of one caller only so much waits, and nothing waits for ever', async () => {
  const { run } = bound(start({ jobMs: 60_000, perCaller: 3, waitMs: 200, waitingBytes: 1_000 }))
  const works = Array.from({ length: 4 }, () => refusalOf(run('schemas.misfit', endless, owner('a'))))
  expect(await works[3]).toBe('rate_limit_exceeded')
  // One is at work; those behind it are refused once they have waited long enough.
  expect(await Promise.all(works.slice(1))).toEqual(Array(3).fill('rate_limit_exceeded'))
  const large = { ...owner('b'), bytes: 1_000_000 }
  const waits = refusalOf(run('schemas.misfit', quick, owner('c')))
  expect(await refusalOf(run('schemas.misfit', quick, large))).toBe('rate_limit_exceeded')
  await pool!.stop()
  expect(await waits).toBe('rate_limit_exceeded')
  expect(await works[0]).toBe('rate_limit_exceeded')
  expect(await refusalOf(run('schemas.misfit', quick, owner('c')))).toBe('rate_limit_exceeded')
})

const bound = (of: CostlyPool) => ({ run: of.run.bind(of) })
