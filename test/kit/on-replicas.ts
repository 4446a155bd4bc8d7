/**
 * Files of `test/api/resources` that run on two replicas in the short form of the tests as well: what one replica does and
 * another must hear of, calls that meet at one moment, and what PostgreSQL decides in another way than SQLite. The project
 * `fast` runs all of them on one server with SQLite, and the store's tests and `test/api/databases` run on both databases.
 */
export const onReplicas: readonly string[] = [
  'approvals-resolve',
  'automation-hooks',
  'conversations-send',
  'device-internal',
  'files',
  'late-callers',
  'questions-wait',
  'run-events',
  'secrets',
  'streams-end',
  'tasks-wakes',
  'wiki-ingest',
  'wiki-search',
  'workflow-checks',
  'workflows',
  'writes-at-once',
].map((name) => `test/api/resources/${name}.test.ts`)
