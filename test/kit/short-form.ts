// Which files run in the short form of the tests (`forms.ts`), where that is not decided within a file. Read by `vitest.config.ts`.

/** Files that run in the long form alone, and what shows the same in the short one. */
export const longOnly: Readonly<Record<string, string>> = {
  'test/e2e/file-story.test.ts': 'fault/files-deaths has the story on a disk, and deaths of a server with a bucket',
  'test/e2e/call-check-paths.test.ts':
    'process/run-host/call-check-paths judges real links, and e2e/ask has calls judged by a real run',
  'test/e2e/harness-acp.test.ts': 'recordings, and e2e/harness-all; CONTRIBUTING.md says which case with which program',
  'test/e2e/harness-claude.test.ts': 'recordings, and e2e/harness-all',
  'test/e2e/harness-codex.test.ts': 'recordings, and e2e/harness-all',
  'test/e2e/harness-opencode.test.ts': 'recordings, and e2e/harness-all',
  'test/e2e/harness-handover.test.ts':
    'e2e/harness-all has a task go from claude to codex, and api/resources/conversations-send that the next one is told what was said',
  'test/e2e/people.test.ts': 'e2e/story, e2e/conversation and e2e/ask show its parts, one by one',
  'test/fault/files-storage.test.ts':
    'fault/files-deaths has a disk that fails, process/server/blobs one that is full and a bucket that is busy or away',
  'test/fault/half-open.test.ts': 'fault/cuts has the same with durations that are divided',
  'test/fault/output.test.ts': 'process/run-host/output has the same without a control plane',
  'test/fault/soak.test.ts': 'each of its faults has a file of its own',
  'test/process/boxes/empty.test.ts':
    'process/copies starts a copy, a server, a device and a run on the machine itself',
  'test/process/boxes/pages.test.ts':
    'cli/whole-pages, cli/backup-page and process/copies/page type these pages on the machine itself',
  'test/process/boxes/debian.test.ts':
    'process/service/system has the service of an account on a systemd of the test, and process/copies upgrades under runs',
  'test/process/harness/opencode-real.test.ts': 'recordings, and e2e/harness-all',
  'test/process/sandbox/warm-kills.test.ts':
    'process/sandbox/warm has a server that stops while a run is given a container, and sandbox/kills kills real ones',
  'test/sandbox/large-repo.test.ts': 'sandbox/repos clones and pushes small ones',
  'test/process/harness/acp-real.test.ts': 'recordings, and e2e/harness-all, also for who decides and dies',
}

/**
 * Files of `test/api/resources` that run on two replicas in the short form as well: what one replica does and another must hear
 * of, calls that meet at one moment, and what PostgreSQL decides in another way than SQLite. The project `fast` runs all of them on
 * one server with SQLite, and the tests of `test/store` and `test/api/databases` run on both databases.
 */
export const onReplicas: readonly string[] = [
  'approvals-resolve',
  'automation-hooks',
  'conversations-send',
  'device-internal',
  'files',
  'late-callers',
  'plugins',
  'questions-wait',
  'run-events',
  'secrets',
  'streams-end',
  'tasks-wakes',
  'wiki-ingest',
  'wiki-search',
  'workflow-checks',
  'writes-at-once',
].map((name) => `test/api/resources/${name}.test.ts`)
