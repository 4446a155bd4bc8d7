import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { compileCache } from '../../test/kit/compile-cache.ts'
import { findPostgres, startPostgres, type ThrowAwayPostgres } from '../postgres.ts'
import { currentRelease } from '../release.ts'

/**
 * `scripts/prove`: has faults strike a system of real programs that works, at moments that a seed draws, and judges every run by
 * the promises of docs/guarantees.md. It exits with 1 when one is broken.
 */
const usage = `usage: scripts/prove [--help] [--minutes 2] [--seed N] [--database sqlite|postgres] [--returns N] [--json]

  --minutes   for how long faults strike; then all is left to come to rest
  --seed      draws the same faults and moments again
  --database  sqlite: one server; postgres: two replicas on a throw-away cluster
  --returns   instead: N runs that end while link, server or daemon is away for 1 s to 24 h, by a moved clock
  --json      prints one document of JSON`

const say = (text: string) => void process.stderr.write(`${text}\n`)

function readArguments() {
  const { values } = parseArgs({
    options: {
      help: { type: 'boolean', default: false },
      minutes: { type: 'string', default: '2' },
      seed: { type: 'string', default: String(randomInt(2 ** 31)) },
      database: { type: 'string', default: 'sqlite' },
      returns: { type: 'string' },
      json: { type: 'boolean', default: false },
    },
  })
  const { help, json, database } = values
  const [minutes, seed, returns] = [Number(values.minutes), Number(values.seed), Number(values.returns ?? 0)]
  if (!(minutes > 0)) throw new Error('--minutes is a number above 0.')
  if (!Number.isInteger(seed) || seed < 0) throw new Error('--seed is a whole number from 0.')
  if (!Number.isInteger(returns) || returns < 0) throw new Error('--returns is a whole number from 1.')
  if (database !== 'sqlite' && database !== 'postgres') throw new Error('--database is "sqlite" or "postgres".')
  return { help, json, minutes, seed, returns, database } as const
}

type Asked = ReturnType<typeof readArguments>

async function main(asked: Asked): Promise<number> {
  const { database, json, minutes, seed, returns } = asked
  say(`seed ${seed}, ${database === 'sqlite' ? 'SQLite' : 'PostgreSQL with two replicas'}`)
  Object.assign(process.env, compileCache, { SVC_TEST_PROGRAMS: await currentRelease() })
  const cluster = database === 'postgres' ? await openPostgres() : null
  try {
    // Loaded once the environment says which programs they start.
    const { proveReturns } = await import('./returns.ts')
    const { prove } = await import('./prove.ts')
    const { machineFacts, tableOf } = await import('./report.ts')
    const { makeEmpty } = await import('./restore.ts')
    const databaseUrl = cluster?.urlOf('proof') ?? null
    if (databaseUrl !== null) await makeEmpty(databaseUrl)
    const options = { seed, databaseUrl, say, stopped: untilStopped() }
    const proof =
      returns > 0 ? await proveReturns({ ...options, count: returns }) : await prove({ ...options, minutes })
    const document = { seed, database, machine: machineFacts(), ...proof }
    process.stdout.write(json ? `${JSON.stringify(document, null, 1)}\n` : tableOf(document))
    return proof.isKept ? 0 : 1
  } finally {
    await cluster?.stop()
  }
}

/** Aborted by Ctrl-C: what was proved until then is told. A second one ends at once. */
function untilStopped(): AbortSignal {
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort())
  return stop.signal
}

async function openPostgres(): Promise<ThrowAwayPostgres> {
  const programs = findPostgres()
  if (programs === null) throw new Error('PostgreSQL is not installed.')
  return startPostgres(programs, { isDurable: true })
}

let asked: Asked | null = null
try {
  asked = readArguments()
} catch (error) {
  say(`${error instanceof Error ? error.message : String(error)}\n${usage}`)
  process.exitCode = 2
}
if (asked?.help) process.stdout.write(`${usage}\n`)
else if (asked !== null) process.exitCode = await main(asked)
