import { afterAll, expect, it } from 'vitest'
import { realWorld } from '../../../shared/lib/world.ts'
import { silentLog } from '../../../control-plane/process/log.ts'
import { EnginePool } from '../../../control-plane/workflows/engine/pool.ts'
import { hostilePrograms as hostile } from '../../kit/hostile-programs.ts'

// Programs that want to hold or break the server, in the worker threads in which all programs run.

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

const outcomeOf = (answer: Awaited<ReturnType<typeof play>>) =>
  answer.kind === 'gave_up'
    ? answer.why
    : answer.value.kind === 'beyond'
      ? answer.value.limit
      : answer.value.kind === 'replayed' && answer.value.end === null
        ? 'waits'
        : 'ended'

/** Those that take all of the time they may. */
const isLasting = ([, , ends]: (typeof hostile)[number]) => ends.source === 'time'

it.each(hostile.filter((each) => !isLasting(each)))('%s is bounded', async (_, body, ends) => {
  expect(outcomeOf(await play(body))).toMatch(ends)
})

it('bounds what never ends, leaves the event loop free meanwhile, and honest programs come in between', async () => {
  const before = process.threadCpuUsage()
  const all = hostile.filter(isLasting).map(async ([name, body]) => [name, outcomeOf(await play(body))])
  const honest = await pool.run(
    'replay',
    { source: `${meta}return 'fine'`, input: '{}', seed: 's', startedAt: 0, known: [], journalBytes: 0, results: [] },
    { workspaceId: 'other', caller: 'd', bytes: 1 },
  )
  expect(await Promise.all(all)).toEqual(hostile.filter(isLasting).map(([name]) => [name, 'time']))
  const { user, system } = process.threadCpuUsage(before)
  expect(honest).toMatchObject({ kind: 'done', value: { end: { kind: 'returned', summary: 'fine' } } })
  // A loop that is held would have this thread do what the programs take together, which is more than a second.
  expect((user + system) / 1_000).toBeLessThan(500)
})
