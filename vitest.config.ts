import { existsSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { compileCache } from './test/kit/compile-cache.ts'
import { isLong } from './test/kit/forms.ts'
import { LongestFirst } from './test/kit/longest-first.ts'
import { longOnly, onReplicas } from './test/kit/short-form.ts'

/**
 * `process` starts programs, opens sockets and files, in processes of its own; its tests leave the environment as they found
 * it. `fast` needs none of that and shares one module graph per thread, so its tests keep no module state. `replicas` runs
 * tests of the API once more, on two replicas of the control plane with PostgreSQL between them, asked in turn: some of them,
 * and all in the long form. The limits
 * of time end what hangs; a machine that is busy with all of it at once takes several times as long as a quiet one.
 */
const shared = {
  exclude: ['**/node_modules/**', ...(isLong ? [] : Object.keys(longOnly))],
  // Files that run one after another in the same worker need not load what they share again.
  isolate: false,
  env: compileCache,
  // One more than there are processors: tests also wait for programs and databases. Five workers on two processors get no
  // more done than three, and their tests run into limits of time.
  maxWorkers: Math.min(availableParallelism() + 1, 8),
  globalSetup: ['test/kit/global-setup.ts'],
  // What is waited for comes at once on a quiet machine; vitest's own second is over on one whose disk stands still.
  expect: { poll: { timeout: 30_000 } },
}

for (const file of [...onReplicas, ...Object.keys(longOnly)])
  if (!existsSync(join(import.meta.dirname, file)))
    throw new Error(`test/kit/short-form.ts names ${file}, which is not there.`)

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: {
          ...shared,
          name: 'process',
          include: ['test/{cli,process,e2e,fault,skew}/**/*.test.ts'],
          pool: 'forks',
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          ...shared,
          name: 'replicas',
          include: isLong ? ['test/api/resources/**/*.test.ts'] : [...onReplicas],
          pool: 'threads',
          testTimeout: 60_000,
          hookTimeout: 60_000,
          setupFiles: ['test/kit/needs-postgres.ts'],
        },
      },
      {
        test: {
          ...shared,
          name: 'fast',
          include: ['{shared,control-plane,device-manager,cli,scripts}/**/*.test.ts', 'test/{store,api}/**/*.test.ts'],
          exclude: [...shared.exclude, 'scripts/benches/**'],
          pool: 'threads',
          setupFiles: ['test/kit/store-calls-setup.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          ...shared,
          name: 'sandbox',
          include: ['test/sandbox/**/*.test.ts'],
          pool: 'forks',
          globalSetup: [...shared.globalSetup, 'test/kit/sandbox-setup.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      // Measures, for `scripts/bench growth`, and is no test.
      ...(process.env['SVC_BENCH_RESULTS'] === undefined
        ? []
        : [{ test: { ...shared, name: 'bench', include: ['scripts/benches/**/*.test.ts'], pool: 'forks' as const } }]),
    ],
  },
})
