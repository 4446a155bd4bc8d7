import { expect, test } from 'vitest'
import { databaseTroubleOf } from './dialect.ts'

test.each([
  // A standby that was promoted, or one that is still a standby.
  ['25006', 'database_unavailable'],
  // The disk, the memory and the file system of PostgreSQL.
  ['53100', 'database_unavailable'],
  ['53200', 'database_unavailable'],
  ['58030', 'database_unavailable'],
  ['57P05', 'database_unavailable'],
  ['08006', 'database_unavailable'],
  // The way to it.
  ['EHOSTUNREACH', 'database_unavailable'],
  ['ENETUNREACH', 'database_unavailable'],
  ['ETIMEDOUT', 'database_unavailable'],
  ['ENOTFOUND', 'database_unavailable'],
  ['EAI_AGAIN', 'database_unavailable'],
  ['SQLITE_FULL', 'database_unavailable'],
  ['SQLITE_IOERR_WRITE', 'database_unavailable'],
  ['SQLITE_READONLY_DBMOVED', 'database_unavailable'],
  ['SQLITE_CANTOPEN_ISDIR', 'database_unavailable'],
  ['SQLITE_BUSY_RECOVERY', 'transient_conflict'],
  ['57014', 'query_timeout'],
  ['23505', 'duplicate'],
  ['23503', null],
  ['42703', null],
  ['SQLITE_CONSTRAINT_FOREIGNKEY', null],
])('%s of a database is told as %s', (code, trouble) => {
  expect(databaseTroubleOf(Object.assign(new Error('it failed'), { code }))).toBe(trouble)
})
