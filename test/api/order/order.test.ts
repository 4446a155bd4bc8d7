import { afterAll, beforeAll, expect, test } from 'vitest'
import { hasPostgres } from '../../kit/database.ts'
import { TestServer } from '../../kit/server.ts'
import { makeScene } from './scene.ts'
import { readOutcome, type Outcome } from './state.ts'
import { writes } from './writes.ts'

// Two or three writes on the same things at once, on two replicas with PostgreSQL between them. What is left and what was
// answered must be what some order of them, one after another, leaves and answers on a fresh copy (on SQLite, where nothing
// can pass anything). `ORDER_SEED` chooses the writes, `ORDER_CASES` how many times.

const seed = Number(process.env['ORDER_SEED'] ?? 1)
const cases = Number(process.env['ORDER_CASES'] ?? 12)
const settings = { SVC_SWEEP_MS: '3600000' }

/** Those that once passed each other stand in each sample. */
const always: readonly (readonly string[])[] = [
  ['delete one', 'wake one'],
  ['take the wake', 'take the other from one', 'finish the other'],
  ['assign to one', 'delete one'],
  ['one reports to two', 'two reports to one'],
  ['begin', 'finish'],
  ['mention one', 'mention one again'],
  ['delete one', 'one leads the project', 'one reports to two'],
  ['describe one', 'rename one', 'rename two'],
]

let first: TestServer
let second: TestServer
let alone: TestServer
beforeAll(async () => {
  if (!hasPostgres()) return
  first = await TestServer.start({ database: 'postgres', settings })
  second = await TestServer.start({ beside: first, settings })
  alone = await TestServer.start({ database: 'sqlite', settings })
  // They would choose the moment at which wakes become runs; here that is a write like the others.
  for (const { plane } of [first, second, alone]) await plane.waker.stop()
})
afterAll(async () => {
  await alone?.stop()
  await second?.stop()
  await first?.stop()
})

const chosen = [...always.slice(0, cases), ...draw(seed, Math.max(0, cases - always.length))]

test.skipIf(!hasPostgres()).for(chosen.map((names) => [names] as const))('%j', { timeout: 60_000 }, async ([names]) => {
  const { outcome, finished } = await atOnce(names)
  const differences: string[] = []
  // Most likely the order in which they were answered.
  for (const order of permutations(finished)) {
    const one = await oneByOne(names, order)
    const difference = compare(outcome, one)
    if (difference === null) return
    differences.push(`${order.map((at) => names[at]).join(', ')} gives (-) but it is (+):\n${difference}`)
  }
  const closest = differences.toSorted((a, b) => a.length - b.length)[0]
  expect.fail(`ORDER_SEED=${seed}: no order of ${names.join(', ')} gives what was left. The closest one, ${closest}`)
})

async function atOnce(names: readonly string[]): Promise<{ outcome: Outcome; finished: number[] }> {
  const scene = await makeScene(first)
  const finished: number[] = []
  const answers = await Promise.all(
    names.map(async (name, at) => {
      const answer = await writes[name]!(at % 2 === 0 ? first : second, scene)
      finished.push(at)
      return answer
    }),
  )
  return { outcome: await readOutcome(first.database.root, scene, answers), finished }
}

async function oneByOne(names: readonly string[], order: readonly number[]): Promise<Outcome> {
  const scene = await makeScene(alone)
  const answers: unknown[] = []
  for (const at of order) answers[at] = await writes[names[at]!]!(alone, scene)
  return readOutcome(alone.database.root, scene, answers)
}

/** null: they say the same. */
function compare(found: Outcome, expected: Outcome): string | null {
  const lines: string[] = []
  for (const part of ['answers', 'rows'] as const) {
    const missing = expected[part].filter((line) => !found[part].includes(line))
    const extra = found[part].filter((line) => !expected[part].includes(line))
    lines.push(...missing.map((line) => `  - ${line}`), ...extra.map((line) => `  + ${line}`))
    if (missing.length + extra.length === 0 && found[part].length !== expected[part].length)
      lines.push(`  ${found[part].length} ${part} for ${expected[part].length}`)
  }
  return lines.length === 0 ? null : lines.join('\n')
}

function permutations(of: readonly number[]): number[][] {
  if (of.length < 2) return [[...of]]
  return of.flatMap((at) => permutations(of.filter((other) => other !== at)).map((rest) => [at, ...rest]))
}

/** Different writes, two or three at a time, by a generator of numbers that the seed begins (Lehmer's). */
function draw(from: number, count: number): string[][] {
  let state = (from % 2_147_483_646) + 1
  const below = (limit: number) => {
    state = (state * 48_271) % 2_147_483_647
    return state % limit
  }
  const names = Object.keys(writes)
  return Array.from({ length: count }, () => {
    const left = [...names]
    return Array.from({ length: 2 + below(2) }, () => left.splice(below(left.length), 1)[0]!)
  })
}
