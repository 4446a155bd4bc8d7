import { defineConfig } from 'vitest/config'

/**
 * `fast` shares one module graph per thread, so its tests keep no module state. `process` starts programs, opens sockets
 * and files, and gets a fresh process per file.
 */
export default defineConfig({
  test: {
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
          name: 'process',
          include: ['test/{cli,sim,process,e2e,fault}/**/*.test.ts'],
          exclude: ['**/node_modules/**'],
          pool: 'forks',
          maxWorkers: 2,
          // After `fast`: the two differ in their workers.
          sequence: { groupOrder: 1 },
          testTimeout: 120_000,
          hookTimeout: 120_000,
          globalSetup: ['test/kit/global-setup.ts'],
        },
      },
    ],
  },
})
