import { createVitest } from 'vitest/node'
import { join } from 'node:path'

/**
 * Runs tests of the folder it is started in, again and again, for the process that started it: what the tests share is made
 * once. It is a process of its own, since nothing else ends a test that never ends.
 */
export interface Question {
  /** Parts of the tests' paths. */
  tests: readonly string[]
  /** Read anew, since it was changed. */
  changed: string
}
export interface Answer {
  failed: boolean
  /** Tests that passed. Fewer than usual, without a failure, say nothing: some were not run. */
  passed: number
}

const vitest = await createVitest('test', { watch: false, project: ['fast', 'process'], bail: 1, reporters: [{}] })

async function run({ tests, changed }: Question): Promise<Answer> {
  vitest.invalidateFile(join(process.cwd(), changed))
  const files = await vitest.globTestSpecifications([...tests])
  if (files.length === 0) throw new Error(`No test is found by ${tests.join(' ')}.`)
  const { testModules, unhandledErrors } = await vitest.runTestSpecifications(files)
  return {
    failed: unhandledErrors.length > 0 || testModules.some((each) => each.state() === 'failed'),
    passed: testModules.reduce((sum, { children }) => sum + [...children.allTests('passed')].length, 0),
  }
}

process.on('message', (question: Question) => {
  void run(question).then((answer) => process.send!(answer))
})
// The end of who asks ends it, too.
process.on('disconnect', () => void vitest.close().finally(() => process.exit()))
