/** Files that are mutated, and the tests that should notice it: parts of paths, as vitest takes them. */
export interface Target {
  files: RegExp
  /** The tests that are asked first. */
  near: readonly string[]
  /** The tests that are asked about what the near ones let live; they take longer. */
  far?: readonly string[]
}

const room = 'control-plane/resources/'
/** Of the rules of a resource: the unit tests in its room, then those of its routes. */
const resource = (name: string, near: readonly string[], far: readonly string[]): Target => ({
  files: new RegExp(`^${room}${name}/(?:[a-z]+-)?rules\\.ts$`),
  near,
  far,
})
const routes = (...names: readonly string[]) => names.map((name) => `test/api/resources/${name}`)

/** The first that fits a file counts. */
export const targets: readonly Target[] = [
  { files: /^shared\/lib\/redact[a-z-]*\.ts$/, near: ['shared/lib/redact.test.ts'] },
  {
    files: /^shared\/permissions\/shell\//,
    near: ['permissions/shell/commands.test.ts'],
    far: ['test/process/run-host/call-check-bash'],
  },
  {
    files: /^shared\/permissions\//,
    near: ['call-inputs', 'decide', 'own-svc'].map((name) => `permissions/${name}.test.ts`),
    far: ['test/process/run-host/call-check-paths'],
  },
  {
    files: /^device-manager\/run-host\/permission\//,
    near: ['call-judge', 'shown-args'].map((name) => `permission/${name}.test.ts`),
    far: ['test/process/run-host/call-check-paths'],
  },
  { files: /^device-manager\/run\/machine\.ts$/, near: ['device-manager/run/machine.test.ts'] },
  {
    files: /^device-manager\/link\/machine\.ts$/,
    near: ['device-manager/link/machine.test.ts'],
    far: ['device-manager/link/reconnect.test.ts'],
  },
  {
    files: /^control-plane\/link\/ingest-batch\.ts$/,
    near: ['test/store/ingest.test.ts', 'test/store/run-log.test.ts'],
    far: [
      'test/api/resources/run-',
      'test/api/dispatch/',
      'test/api/kernel/link-',
      ...routes('approvals', 'agent-spend'),
    ],
  },
  {
    files: /^control-plane\/lifecycle\//,
    near: [
      'test/store/leases.test.ts',
      'test/store/run-ended.test.ts',
      'test/store/runs.test.ts',
      ...routes('runs.test'),
    ],
    far: ['test/api/dispatch/', 'test/api/databases/', 'test/store/', ...routes('')],
  },
  {
    files: /^control-plane\/sign-in\/device-flow\/rules\.ts$/,
    near: ['device-flow/rules.test.ts'],
    far: ['test/api/sign-in/'],
  },
  resource('agents', [`${room}agents/`], routes('agent', 'trust')),
  resource('approvals', [`${room}approvals/`], routes('approvals', 'trust', 'platform-changes')),
  resource('automations', [`${room}automations/`], routes('automation')),
  resource('conversations', [`${room}conversations/`], routes('conversation', 'message')),
  resource('devices', routes('device'), ['test/api/dispatch/', ...routes('run', 'trust')]),
  resource('projects', [`${room}projects/`], routes('project')),
  resource('questions', [`${room}questions/`], routes('question')),
  resource('repos', [`${room}repos/`], routes('repos', 'github')),
  resource('runs', [`${room}runs/`], routes('run')),
  resource('secrets', routes('secrets'), routes('run')),
  resource('tasks', [`${room}tasks/`], [...routes('task'), 'test/api/databases/tasks']),
  resource('workspaces', [`${room}workspaces/`], routes('workspace')),
]

export const targetOf = (file: string): Target | null =>
  file.endsWith('.test.ts') ? null : (targets.find(({ files }) => files.test(file)) ?? null)
