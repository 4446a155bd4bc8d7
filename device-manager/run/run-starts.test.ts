import { idFrom } from '../../shared/lib/ids.ts'
import { expect, test } from 'vitest'
import type { CredentialAnswer } from '../../shared/device/credential.ts'
import type { DeviceMessage } from '../../shared/device/protocol.ts'
import { woundWorld } from '../../test/kit/wound-world.ts'
import type { Start } from './hosts/run-hosts.ts'
import type { RunEvent, RunState } from './machine.ts'
import { RunStarts } from './run-starts.ts'

// The start of a run: when values of connections are asked for, and when the run does without them.

const runId = 'run_0123456789abcdef'
const connection = (number: number, ...names: string[]) => ({ connectionId: `conn_${number}`, names })

function starts(
  connectionVariables: ReturnType<typeof connection>[] | null,
  phase: RunState['phase'] = 'accepted',
  wasLaunched = false,
) {
  const world = woundWorld()
  const asked: (DeviceMessage & { type: 'credential.get' })[] = []
  const events: RunEvent[] = []
  const kept = new Map<string, Start>()
  const state = { runId, fence: 2, phase, spec: { connectionVariables } } as unknown as RunState
  const held: { state: RunState | null } = { state }
  const of = new RunStarts({
    world,
    log: { info() {}, warn() {}, error() {}, debug() {} },
    server: 'http://server',
    send: (message) => asked.push(message as (typeof asked)[number]) > 0,
    find: () => held.state,
    handle: (_, event) => void events.push(event),
    journal: { wasLaunched: () => wasLaunched },
    hosts: { startOf: (id) => kept.get(id) ?? null, keepStart: (id, start) => void kept.set(id, start) },
  })
  const receive = (secrets: Record<string, string> = {}, fence = 2) =>
    of.receive({ type: 'run.start', runId: idFrom(runId), fence, token: 'token', secrets })
  const settled = () => new Promise((resolve) => setImmediate(resolve))
  const answer = async (at: number, said: CredentialAnswer) => {
    of.answered({ requestId: asked[at]!.requestId, answer: said })
    await settled()
  }
  return { world, asked, events, kept, held, receive, answer, settled, start: () => kept.get(runId) }
}
const given = (env: Record<string, string>): CredentialAnswer => ({
  ok: true,
  headers: {},
  values: [],
  env,
  version: 1,
  expiresInMs: null,
})

test('a run without variables of connections starts at once, one with them when all have come', async () => {
  const plain = starts(null)
  plain.receive({ A: '1' })
  expect([plain.start()?.secrets, plain.asked]).toEqual([{ A: '1' }, []])

  const { receive, answer, asked, events, start } = starts([connection(1, 'A', 'B'), connection(2, 'C')])
  receive({ B: 'of the secret' })
  receive({ B: 'of the secret' })
  expect(asked).toMatchObject([
    { connectionId: 'conn_1', isForEnv: true, fence: 2 },
    { connectionId: 'conn_2', isForEnv: true },
  ])
  await answer(0, given({ A: 'a', B: 'b', MORE: 'that nobody asked for' }))
  expect(start()).toBeUndefined()
  await answer(1, given({ C: 'c' }))
  expect(start()).toMatchObject({ secrets: { A: 'a', B: 'of the secret', C: 'c' } })
  expect(start()).not.toHaveProperty('variablesMissed')
  expect(events).toEqual([{ type: 'start_received', secretNames: ['A', 'B', 'C'] }])
  // A start that is said again keeps what the harness has, and asks for nothing.
  receive({ B: 'another' })
  expect([start()?.secrets, asked.length]).toEqual([{ A: 'a', B: 'another', C: 'c' }, 2])
})

test('a run does without what is refused, or does not come in time, and says so', async () => {
  const { world, receive, answer, asked, start, settled } = starts([connection(1, 'A'), connection(2, 'B')])
  receive()
  await answer(0, { ok: false, message: 'The connection is expired.' })
  world.advance(5_000)
  expect(asked.map(({ connectionId }) => connectionId)).toEqual(['conn_1', 'conn_2', 'conn_2'])
  expect(asked[2]!.requestId).toBe(asked[1]!.requestId)
  world.advance(20_000)
  await settled()
  expect(start()).toMatchObject({
    secrets: {},
    variablesMissed: [
      { names: ['A'], why: 'The connection is expired.' },
      { names: ['B'], why: 'svc did not answer in time.' },
    ],
  })
  expect(world.timerCount).toBe(0)
})

test('a lease that is lost meanwhile starts nothing, nor does one that is not held', async () => {
  const { receive, answer, held, events } = starts([connection(1, 'A')])
  receive({}, 1)
  receive()
  held.state = null
  await answer(0, given({ A: 'a' }))
  expect(events).toEqual([])
})

test('what a harness that runs already was given is not asked for anew', () => {
  const { receive, asked, start } = starts([connection(1, 'A')], 'live')
  receive({ B: 'b' })
  expect([asked, start()?.secrets]).toEqual([[], { B: 'b' }])
})

test('a run that was launched before is ended, and one that has begun goes on', () => {
  for (const [wasLaunched, phase, type] of [
    [true, 'accepted', 'cancel_received'],
    [false, 'accepted', 'start_received'],
    [true, 'starting', 'start_received'],
  ] as const) {
    const { receive, events } = starts(null, phase, wasLaunched)
    receive()
    expect(events).toMatchObject([{ type }])
  }
})
