import { readFileSync, readdirSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { assetUrl } from '../../../shared/lib/program-file.ts'
import { repeats } from '../../../test/kit/forms.ts'
import { createInstance } from './instance.ts'
import { replay } from './replay.ts'
import type { HandedResult, ReplayInput } from './words.ts'

// A run that goes on from its journal is where it was, whatever the order in which its results came.

const wasm = new WebAssembly.Module(readFileSync(assetUrl('quickjs.wasm')))
const orders = repeats('WORKFLOW_ORDERS', { short: 8, long: 60 })

const source = `export const meta = { name: 'x', title: 'X' }
const seen = []
const note = (name) => (value) => { seen.push(name + value); log(name, value, Math.random(), Date.now()); return value }
const one = ['a', 'b', 'c'].map((name) => agent(name).then(note(name)))
const first = await Promise.race(one)
phase('second ' + first)
const rest = await parallel([
  () => agent('d after ' + seen.length).then(note('d')),
  () => gate(['e', String(Math.random())]).then(({ exitCode }) => note('e')(exitCode)),
  () => agent('f').then((value) => agent('g of ' + value)).then(note('g')),
])
const all = await Promise.all(one)
const piped = await pipeline([1, 2, 3], (n) => agent('h' + n + seen.join()), (text, n) => (n === 2 ? fail2() : agent('i' + text)))
function fail2() { throw new Error('two') }
return { seen, rest, all, piped, when: Date.now() }
`

interface State {
  calls: readonly { kind: string; digest: string }[]
  log: readonly string[]
  end: unknown
}

const base = { source, input: '{}', seed: 'flr_1', startedAt: 1_000, journalBytes: 0 }

async function play(input: Pick<ReplayInput, 'known' | 'results'>): Promise<State> {
  const played = replay(await createInstance(wasm), { ...base, ...input })
  if (played.kind !== 'replayed') throw new Error(JSON.stringify(played))
  return played
}

const valueOf = (kind: string, seq: number): unknown =>
  kind === 'gate' ? { exitCode: seq, output: '', ranArgv: [], timedOut: false } : `r${seq}`

/** Plays with each result as it comes; `pick` says which of those that wait is next, and whether the next one comes with it. */
async function playLive(pick: (waiting: number) => { at: number; isAlone: boolean }) {
  const calls: { kind: string; digest: string }[] = []
  const results: HandedResult[] = []
  for (;;) {
    const state = await play({ known: calls.map(({ digest }) => digest), results })
    calls.push(...state.calls)
    const handed = new Set(results.map(({ seq }) => seq))
    const waiting = calls.map((_, seq) => seq).filter((seq) => !handed.has(seq))
    if (state.end !== null || waiting.length === 0) return { calls, results, state }
    for (let isAlone = false; !isAlone && waiting.length > 0;) {
      const next = pick(waiting.length)
      const [seq] = waiting.splice(next.at, 1) as [number]
      isAlone = next.isAlone
      const text = JSON.stringify(valueOf(calls[seq]!.kind, seq))
      results.push({ seq, at: 2_000 + results.length * 10, isValue: true, text })
    }
  }
}

it(
  'results that come in any order, alone or together, lead to the same state live and replayed',
  { timeout: 600_000 },
  async () => {
    const ends = new Set<string>()
    await fc.assert(
      fc.asyncProperty(fc.infiniteStream(fc.record({ at: fc.nat(), isAlone: fc.boolean() })), async (draws) => {
        const live = await playLive((count) => {
          const { at, isAlone } = draws.next().value as { at: number; isAlone: boolean }
          return { at: at % count, isAlone }
        })
        expect(live.state.end).toMatchObject({ kind: 'returned' })
        const known = live.calls.map(({ digest }) => digest)
        // The program is replayed from the beginning, by an engine that knows the calls, and by one that is told nothing.
        const again = await play({ known, results: live.results })
        expect({ log: again.log, end: again.end, calls: again.calls }).toEqual({
          log: live.state.log,
          end: live.state.end,
          calls: [],
        })
        const anew = await play({ known: [], results: live.results })
        expect(anew.calls.map(({ digest }) => digest)).toEqual(known)
        ends.add(JSON.stringify(live.state.end))
      }),
      { numRuns: orders },
    )
    // The program does tell orders apart.
    expect(ends.size).toBeGreaterThan(orders / 4)
  },
)

/** Journals of runs that ended, as they stand in databases: each engine must play them to the same end. */
describe('a journal that was kept', () => {
  const folder = new URL('../../../test/fixtures/workflows/', import.meta.url)
  const files = readdirSync(folder).filter((name) => name.endsWith('.json'))
  it.each(files)('%s', async (file) => {
    const { input, end, log } = JSON.parse(readFileSync(new URL(file, folder), 'utf8')) as {
      input: ReplayInput
      end: unknown
      log: unknown
    }
    expect(replay(await createInstance(wasm), input)).toEqual({ kind: 'replayed', calls: [], log, end })
    const [last] = input.results.slice(-1)
    expect(last).toBeDefined()
    // The program waits for the last result where it is not there.
    expect(replay(await createInstance(wasm), { ...input, results: input.results.slice(0, -1) })).toMatchObject({
      kind: 'replayed',
      end: null,
    })
  })
  it('there are some', () => expect(files.length).toBeGreaterThan(3))
})
