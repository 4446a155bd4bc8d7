import { monitorEventLoopDelay } from 'node:perf_hooks'
import { afterAll, expect, it } from 'vitest'
import { realWorld } from '../../../shared/lib/world.ts'
import { silentLog } from '../../../control-plane/process/log.ts'
import { EnginePool } from '../../../control-plane/workflows/engine/pool.ts'

/** Programs that want to hold or break the server, in the worker threads in which all programs run. */

const pool = new EnginePool({ world: realWorld, log: silentLog })
afterAll(() => pool.stop())

const meta = "export const meta = { name: 'x', title: 'X' };\n"
const play = (body: string) =>
  pool.run(
    'replay',
    {
      source: meta + body,
      input: '{}',
      seed: 'flr_1',
      startedAt: 0,
      known: [],
      journalBytes: 0,
      results: [],
      replayMs: 150,
    },
    { workspaceId: 'w', caller: 'c', bytes: body.length },
  )

/** Says what may become of each; `ended` is a failure of the program itself. */
const hostile: readonly [name: string, body: string, ends: RegExp][] = [
  ['a loop', 'while (true) {}', /time/],
  ['a loop of jobs', 'for (;;) await 0', /time/],
  ['a loop of then', 'const f = () => Promise.resolve().then(f); await f()', /time/],
  ['recursion', 'const f = () => f() + 1; f()', /ended/],
  ['recursion in finally', 'const f = () => { try { f() } finally { f() } }; f()', /ended|time/],
  ['deep JSON', 'JSON.parse("[".repeat(200000) + "]".repeat(200000))', /ended|waits/],
  ['a pattern', '/^(a+)+$/.test("a".repeat(40) + "b")', /time/],
  ['a large number', 'const a = 3n ** 5000000n; a * a', /ended|time|memory/],
  ['a long text', '"a".repeat(2 ** 29).length', /ended|memory/],
  ['a long list', 'new Array(4e8).fill(1)', /memory|ended|time/],
  ['a sort', 'Array.from({ length: 3000000 }, (_, n) => -n).sort()', /memory|time|ended/],
  ['a join', 'const m = "x".repeat(1048576); new Array(100000).fill(m).join()', /memory|ended|time/],
  ['a list of lists', 'let a = []; for (;;) a = [a, a, new Array(1000).fill(a)]', /memory|time/],
  [
    'arrays in a function that nobody awaits',
    '(async () => { const a = []; for (;;) a.push(new Uint8Array(1e6)) })(); await agent("x")',
    /memory/,
  ],
  [
    'a proxy',
    'const p = new Proxy({}, { get: (t, k, r) => r[k] }); try { p.x } catch {} for (;;) { try { p.x } catch {} }',
    /time/,
  ],
  ['a sparse list', 'const a = []; a.length = 4294967295; a.indexOf(3)', /time/],
  ['a caught loop', 'for (;;) try { for (;;); } catch {}', /time/],
  ['parentheses', '('.repeat(90_000), /crash|ended/],
  ['lines of the log', 'for (let n = 0; n < 1e6; n++) log("line " + n); await agent("x")', /waits|time/],
  ['calls', 'for (let n = 0; n < 1e6; n++) agent("x")', /ended/],
  [
    'deep arguments',
    'let a = {}; for (let n = 0; n < 1e5; n++) a = { a }; await agent("x", { schema: a })',
    /ended|crash/,
  ],
  [
    'an end in an end',
    'Object.defineProperty(Object.prototype, "then", { get() { return () => {} } }); await agent("x")',
    /waits|ended/,
  ],
]

it.each(hostile)('%s is bounded', async (_, body, ends) => {
  const answer = await play(body)
  const outcome =
    answer.kind === 'gave_up'
      ? answer.why
      : answer.value.kind === 'beyond'
        ? answer.value.limit
        : answer.value.kind === 'replayed' && answer.value.end === null
          ? 'waits'
          : 'ended'
  expect(outcome).toMatch(ends)
})

it('leaves the event loop free while hostile programs run, and honest ones come in between', async () => {
  const lag = monitorEventLoopDelay({ resolution: 5 })
  lag.enable()
  const all = hostile.slice(0, 12).map(([, body]) => play(body))
  const honest = await pool.run(
    'replay',
    { source: `${meta}return 'fine'`, input: '{}', seed: 's', startedAt: 0, known: [], journalBytes: 0, results: [] },
    { workspaceId: 'other', caller: 'd', bytes: 1 },
  )
  await Promise.all(all)
  lag.disable()
  expect(honest).toMatchObject({ kind: 'done', value: { end: { kind: 'returned', summary: 'fine' } } })
  // A loop that is held would be late by the seconds that the programs take together.
  expect(lag.percentile(99) / 1e6).toBeLessThan(500)
})
