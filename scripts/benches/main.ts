import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, loadavg, tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { findPostgres, startPostgres, type ThrowAwayPostgres } from '../postgres.ts'
import { currentRelease } from '../release.ts'
import { changeSets } from './change-sets.ts'
import { claims } from './claims.ts'
import { cliStart } from './cli-start.ts'
import type { Bench, Context } from './context.ts'
import { cost } from './cost.ts'
import { dispatch } from './dispatch.ts'
import { field } from './field.ts'
import { files } from './files.ts'
import { follow } from './follow.ts'
import { growth } from './growth.ts'
import { harness } from './harness.ts'
import { harnessFlood } from './harness-flood.ts'
import { callCheck } from './call-check.ts'
import { harnessMemory } from './harness-memory.ts'
import { heartbeats } from './heartbeats.ts'
import { hostStart } from './host-start.ts'
import { ingest } from './ingest.ts'
import { lists } from './lists.ts'
import type { Result } from './measure.ts'
import { mcpDoor } from './mcp-door.ts'
import { memory } from './memory.ts'
import { ptyCapture } from './pty-capture.ts'
import { reads } from './reads.ts'
import { reconnect } from './reconnect.ts'
import { lineOf } from './report.ts'
import { repoInstall } from './repo-install.ts'
import { sandbox } from './sandbox.ts'
import { sandboxClone } from './sandbox-clone.ts'
import { search } from './search.ts'
import { skills } from './skills.ts'
import { ten } from './ten.ts'
import { wake } from './wake.ts'
import { wall } from './wall.ts'
import { wikiHostile } from './wiki-hostile.ts'
import { wikiIngest } from './wiki-ingest.ts'
import { workflowLoad } from './workflow-load.ts'
import { workflows } from './workflows.ts'

/**
 * `scripts/bench`: each number is a ratio to a bare peer that was measured in turn with it in the same run, since absolute
 * ones say little on a shared machine. It never fails for being slow; it exits with 1 only when something did not work.
 */
const benches: readonly Bench[] = [
  wake,
  ten,
  skills,
  wall,
  dispatch,
  claims,
  ingest,
  follow,
  lists,
  reads,
  growth,
  search,
  wikiIngest,
  wikiHostile,
  heartbeats,
  reconnect,
  workflows,
  workflowLoad,
  files,
  repoInstall,
  changeSets,
  ptyCapture,
  hostStart,
  harness,
  harnessMemory,
  callCheck,
  mcpDoor,
  harnessFlood,
  sandbox,
  sandboxClone,
  cliStart,
  memory,
  cost,
  field,
]
/** Load of one minute above which two processors are too busy for the numbers to mean much. */
const quietLoad = 2

const say = (text: string) => void process.stderr.write(`${text}\n`)

const usage = `usage: scripts/bench [--help] [--list] [--json] [--large | --short] [--rounds 5] [${benches.map(({ name }) => name).join('] [')}]`

/** Exits where they cannot be understood. */
function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        help: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
        large: { type: 'boolean', default: false },
        list: { type: 'boolean', default: false },
        short: { type: 'boolean', default: false },
        rounds: { type: 'string', default: '5' },
      },
    })
  } catch (error) {
    say(`${error instanceof Error ? error.message : String(error)}\n${usage}`)
    process.exit(2)
  }
}

const { values: flags, positionals } = readArguments()

async function main(): Promise<number> {
  if (flags.help) {
    process.stdout.write(`${usage}\n`)
    return 0
  }
  if (flags.list) {
    for (const { name, about } of benches) process.stdout.write(`${name.padEnd(14)} ${about}\n`)
    return 0
  }
  const unknown = positionals.filter((name) => benches.every((bench) => bench.name !== name))
  const rounds = flags.short ? 1 : Number(flags.rounds)
  if (unknown.length > 0 || !Number.isInteger(rounds) || rounds < 1 || (flags.short && flags.large)) {
    say(usage)
    return 2
  }
  const load = { start: loadNow(), end: 0 }
  warnOfLoad('start', load.start)
  const context = makeContext(rounds, await currentRelease())
  try {
    const measured = await measureAll(context, positionals)
    load.end = loadNow()
    warnOfLoad('end', load.end)
    const machine = { cpus: cpus().length, memoryBytes: totalmem(), node: process.version, platform: process.platform }
    if (flags.json) process.stdout.write(`${JSON.stringify({ machine, load, rounds, ...measured }, null, 1)}\n`)
    return measured.failed.length === 0 ? 0 : 1
  } finally {
    await context.end()
  }
}

async function measureAll(context: Context, names: readonly string[]) {
  const results: (Result & { bench: string; load: number })[] = []
  const failed: { bench: string; message: string }[] = []
  for (const bench of benches.filter(({ name }) => names.length === 0 || names.includes(name))) {
    say(`${bench.name}: ${bench.about}`)
    try {
      for (const result of await bench.run(context)) {
        results.push({ ...result, bench: bench.name, load: loadNow() })
        ;(flags.json ? say : (text: string) => void process.stdout.write(`${text}\n`))(lineOf(result, loadNow()))
      }
    } catch (error) {
      const message = error instanceof Error ? (error.stack ?? error.message) : String(error)
      failed.push({ bench: bench.name, message })
      say(`${bench.name} FAILED: ${message}`)
    }
  }
  return { results, failed }
}

function makeContext(rounds: number, dist: string): Context & { end(): Promise<void> } {
  const scratch = mkdtempSync(join(tmpdir(), 'svc-bench-'))
  let cluster: Promise<ThrowAwayPostgres | null> | null = null
  return {
    scratch,
    dist,
    rounds,
    large: flags.large,
    say: (text) => say(`  ${text}`),
    postgres: () => (cluster ??= openPostgres()),
    async end() {
      await (await cluster)?.stop()
      rmSync(scratch, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

async function openPostgres(): Promise<ThrowAwayPostgres | null> {
  const programs = findPostgres()
  if (programs !== null) return startPostgres(programs, { isDurable: true })
  say('  NOT MEASURED on PostgreSQL: its programs are not installed')
  return null
}

const loadNow = () => Math.round((loadavg()[0] ?? 0) * 100) / 100

function warnOfLoad(when: string, load: number): void {
  say(`load at the ${when}: ${load}`)
  if (load > quietLoad)
    say(
      `*** WARNING: load ${load} is above ${quietLoad}: these numbers are of a busy machine; measure again when it is quiet ***`,
    )
}

process.exitCode = await main()
