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
  const before = process.threadCpuUsage()
  // Those that take all of the time they may.
  const lasting = hostile.filter(([, , ends]) => ends.source === 'time')
  const all = lasting.map(([, body]) => play(body))
  const honest = await pool.run(
    'replay',
    { source: `${meta}return 'fine'`, input: '{}', seed: 's', startedAt: 0, known: [], journalBytes: 0, results: [] },
    { workspaceId: 'other', caller: 'd', bytes: 1 },
  )
  await Promise.all(all)
  const { user, system } = process.threadCpuUsage(before)
  expect(honest).toMatchObject({ kind: 'done', value: { end: { kind: 'returned', summary: 'fine' } } })
  // A loop that is held would have this thread do what the programs take together, which is more than a second.
  expect((user + system) / 1_000).toBeLessThan(500)
})
