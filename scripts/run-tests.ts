import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import { isLong } from '../test/kit/forms.ts'

/**
 * Runs every check, then every test, then prints one line that counts them. Tests that could not run (no PostgreSQL, no
 * Claude Code) count as skipped and are named again at the end, so that nobody overlooks them.
 */
const root = join(import.meta.dirname, '..')
const scratch = mkdtempSync(join(tmpdir(), 'svc-test-'))
const reportFile = join(scratch, 'report.json')

function run(command: string, args: readonly string[], env: Record<string, string> = {}): Promise<number> {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: root, stdio: 'inherit', env: { ...process.env, ...env } })
    child.on('close', (code) => resolve(code ?? 1))
  })
}

const report = z.object({
  numPassedTests: z.number(),
  numFailedTests: z.number(),
  numPendingTests: z.number(),
  numTodoTests: z.number().default(0),
  numFailedTestSuites: z.number().default(0),
  testResults: z.array(
    z.object({
      name: z.string(),
      message: z.string().default(''),
      status: z.string(),
      assertionResults: z.array(z.object({ fullName: z.string(), status: z.string() })),
    }),
  ),
})

/** Two rows at once: the longest check beside all others, since none of them keeps two processors busy from its start to its end. */
const checks = [['check:lint'], ['check:types', 'check:format', 'check:imports', 'check:words']]

/** Runs them one after another; says which passed. */
async function runAll(names: readonly string[]): Promise<boolean[]> {
  const passed: boolean[] = []
  for (const name of names) passed.push(await runCheck(name))
  return passed
}

/** What it prints comes in one piece, with its name before it. */
function runCheck(name: string): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn('npm', ['run', '--silent', name], { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] })
    const said: Buffer[] = []
    for (const output of [child.stdout, child.stderr]) output.on('data', (chunk: Buffer) => said.push(chunk))
    child.on('close', (code) => {
      process.stdout.write(`== ${name}\n${Buffer.concat(said).toString()}`)
      resolve(code === 0)
    })
  })
}

async function main(): Promise<number> {
  // The real harnesses and an engine, for the tests that drive them; where one cannot be had its tests say so and are skipped.
  const fetched = Promise.all([
    ...['claude', 'codex', 'opencode', 'qwen'].map((name) => run('bash', ['scripts/fetch-harness', name])),
    run('bash', ['scripts/fetch-sandbox']),
  ])
  const ends = await Promise.all(checks.map(runAll))
  const arePassed = ends.flat()
  let passed = arePassed.filter(Boolean).length
  let failed = arePassed.length - passed
  await fetched
  process.stdout.write('== tests\n')
  const code = await run(
    join(root, 'node_modules', '.bin', 'vitest'),
    ['run', '--reporter=default', '--reporter=json', `--outputFile.json=${reportFile}`, ...process.argv.slice(2)],
    { NODE_OPTIONS: '--disable-warning=ExperimentalWarning' },
  )
  const result = readReport()
  if (!result) {
    process.stderr.write('the test runner left no report\n')
    process.stdout.write(`${passed} passed, ${failed + 1} failed, 0 skipped\n`)
    return 1
  }
  const skipped = result.testResults.flatMap((file) =>
    file.assertionResults.filter((test) => test.status === 'skipped' || test.status === 'pending'),
  )
  if (skipped.length > 0) {
    process.stdout.write('\nCOULD NOT RUN HERE:\n')
    for (const test of skipped) process.stdout.write(`  ${test.fullName}\n`)
  }
  // A file that cannot be loaded has no failing test of its own.
  const brokenFiles = result.testResults.filter(
    (file) => file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed'),
  ).length
  passed += result.numPassedTests
  failed += result.numFailedTests + brokenFiles
  if (code !== 0 && failed === 0) failed = 1
  if (!isLong) process.stdout.write('This was the short form; `TESTS=long ./scripts/test` runs all of it.\n')
  process.stdout.write(`${passed} passed, ${failed} failed, ${skipped.length} skipped\n`)
  return failed === 0 ? 0 : 1
}

function readReport(): z.infer<typeof report> | null {
  try {
    return report.parse(JSON.parse(readFileSync(reportFile, 'utf8')))
  } catch {
    return null
  }
}

const status = await main()
rmSync(scratch, { recursive: true, force: true })
process.exit(status)
