import { beforeEach } from 'vitest'
import { hasPostgres } from './database.ts'

/** Where PostgreSQL is not installed the tests of a project that needs it are skipped, and counted as skipped. */
beforeEach(({ skip }) => {
  if (!hasPostgres()) skip('PostgreSQL is not installed')
})
