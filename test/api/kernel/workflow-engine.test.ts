import { monitorEventLoopDelay } from 'node:perf_hooks'
import { afterAll, expect, it } from 'vitest'
import { realWorld } from '../../../shared/lib/world.ts'
import { silentLog } from '../../../control-plane/process/log.ts'
import { EnginePool } from '../../../control-plane/workflows/engine/pool.ts'
import { hostilePrograms as hostile } from '../../kit/hostile-programs.ts'

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
