import { join } from 'node:path'
import { createVitest, type Vitest } from 'vitest/node'

/**
 * Runs tests of the folder it is started in, again and again, for the process that started it: what the tests share is made
 * once. It is a process of its own, since nothing else ends a test that never ends.
 */
export interface Question {
  /** Parts of the tests' paths; all of one project. */
  tests: readonly string[]
  /** Read anew, since it was changed. */
  changed: string
}
export interface Answer {
  /** The tests that failed, by name. */
  failed: readonly string[]
  /** Tests that passed. Fewer than usual, without a failure, say nothing: some were not run. */
  passed: number
}

/** Of each project: what all its tests share is made when the first of them is asked. */
const started = new Map<string, Promise<Vitest>>()

/** All that were changed so far: each is as it was again when another one is. */
const changedFiles = new Set<string>()

function vitestOf(tests: readonly string[]): Promise<Vitest> {
  const project = tests.some((name) => name.startsWith('test/process/')) ? 'process' : 'fast'
  const vitest =
    started.get(project) ?? createVitest('test', { watch: false, project: [project], bail: 1, reporters: [{}] })
  started.set(project, vitest)
  return vitest
}

async function run({ tests, changed }: Question): Promise<Answer> {
  const vitest = await vitestOf(tests)
  changedFiles.add(join(process.cwd(), changed))
  for (const file of changedFiles) vitest.invalidateFile(file)
  const files = await vitest.globTestSpecifications([...tests])
  if (files.length === 0) throw new Error(`No test is found by ${tests.join(' ')}.`)
  const { testModules, unhandledErrors } = await vitest.runTestSpecifications(files)
  // Vitest keeps what it knows of files that were asked before.
  const asked = testModules.filter(({ moduleId }) => files.some((file) => file.moduleId === moduleId))
  const broken = asked.filter((each) => each.state() === 'failed')
  return {
    failed: [
      ...unhandledErrors.map(String),
      ...broken.map(
        (each) => `${each.moduleId}: ${[...each.children.allTests('failed')].map((test) => test.fullName).join(', ')}`,
      ),
    ],
    passed: asked.reduce((sum, { children }) => sum + [...children.allTests('passed')].length, 0),
  }
}

process.on('message', (question: Question) => {
  void run(question).then((answer) => process.send!(answer))
})
// The end of who asks ends it, too.
process.on('disconnect', () => {
  const closed = [...started.values()].map(async (vitest) => (await vitest).close())
  void Promise.allSettled(closed).then(() => process.exit())
})
