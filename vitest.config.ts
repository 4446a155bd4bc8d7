import { defineConfig } from 'vitest/config'
import { LongestFirst } from './test/kit/longest-first.ts'

/**
 * `fast` shares one module graph per thread, so its tests keep no module state. `replicas` runs the tests of the API once
 * more, on two replicas of the control plane with PostgreSQL between them, asked in turn. `process` starts programs, opens
 * sockets and files, and gets a fresh process per file.
 */
export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: {
          name: 'fast',
          include: ['{shared,control-plane,device-manager,cli,scripts}/**/*.test.ts', 'test/{store,api}/**/*.test.ts'],
          exclude: ['**/node_modules/**'],
          pool: 'threads',
          isolate: false,
          testTimeout: 20_000,
          hookTimeout: 60_000,
          globalSetup: ['test/kit/global-setup.ts'],
        },
      },
      {
        test: {
          name: 'replicas',
          include: ['test/api/resources/**/*.test.ts'],
          exclude: ['**/node_modules/**'],
          pool: 'threads',
          isolate: false,
          maxWorkers: 2,
          // After `fast`, which has the same tests on one replica: a test that fails there need not be looked at here.
          sequence: { groupOrder: 1 },
          testTimeout: 20_000,
          hookTimeout: 60_000,
          globalSetup: ['test/kit/global-setup.ts'],
          setupFiles: ['test/kit/needs-postgres.ts'],
        },
      },
      {
        test: {
          name: 'process',
          include: ['test/{cli,sim,process,e2e,fault}/**/*.test.ts'],
          exclude: ['**/node_modules/**'],
          pool: 'forks',
          // More than there are processors: these tests wait for programs most of the time.
          maxWorkers: 4,
          // After `fast`: the two differ in their workers.
          sequence: { groupOrder: 2 },
          testTimeout: 120_000,
          hookTimeout: 120_000,
          globalSetup: ['test/kit/global-setup.ts'],
          setupFiles: ['test/kit/process-setup.ts'],
        },
      },
    ],
  },
})
