import { measureTables } from '../db/statistics.ts'
import type { Sweep } from './sweeper.ts'

/** Keeps what the planner of SQLite knows of the tables near what they are. */
export const statisticsSweep: Sweep = {
  name: 'statistics',
  everyMs: 60_000,
  async run({ root, log }) {
    const tables = await measureTables(root)
    if (tables > 0) log.debug({ tables }, 'tables measured')
  },
}
