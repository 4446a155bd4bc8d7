// Commands of pages that are typed by another test, or by none.

/** Pages whose commands another test types; all of them, or those that begin so. */
export const typedElsewhere: Readonly<Record<string, { test: string; commands: readonly string[] }>> = {
  'api.md': { test: 'api-page.test.ts', commands: ['curl', 'AGENT=', 'RUN='] },
  'backup.md': {
    test: 'backup-page.test.ts',
    commands: ['svc-server backup', 'svc-server restore', 'pg_', 'cp', 'tar', 'install', 'mkdir'],
  },
  'connections.md': {
    test: 'connections.test.ts',
    commands: ['svc connection', 'echo', 'svc mcp sign-in', 'svc mcp tools'],
  },
  'files.md': { test: 'files.test.ts', commands: ['svc file'] },
  'guarantees.md': { test: '../process/checkout/prove.test.ts', commands: ['scripts/prove'] },
  'install.md': {
    test: '../process/copies/page.test.ts',
    commands: ['tar ', './svc-', 'export PATH', 'svc version', 'svc upgrade', 'svc uninstall'],
  },
  'learnings.md': { test: 'learnings.test.ts', commands: ['svc learning'] },
  'plugins.md': { test: 'plugins.test.ts', commands: ['svc plugin'] },
  'skills.md': { test: 'skills.test.ts', commands: ['svc skill'] },
  'wiki.md': { test: 'wiki.test.ts', commands: ['svc wiki'] },
}

/** Commands that no test types, by page and how they begin, with the reason. */
export const notTyped: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'README.md': { 'alias svc=': 'the test has svc by its name' },
  'start.md': {
    './scripts/start': 'installs, and serves until Ctrl-C; test/process/checkout starts it',
    'alias svc=': 'the test has svc by its name',
    'cd your-project': 'each command is typed there',
  },
  'install.md': {
    'npm install -g': 'puts programs into the folders of npm; test/process/boxes types it',
    'sudo apt install': 'needs root; test/process/boxes types it',
    'brew install': 'needs Homebrew',
    openssl: 'makes a key; the test has one',
    'npm run release': 'test/kit/releases.ts makes releases by the same function',
  },
  'backup.md': { 'svc-server start': 'serves until it is ended; test/process/server/backup.test.ts starts one' },
  'team-server.md': {
    'runuser -u postgres': 'needs root and the PostgreSQL of the machine; test/process/boxes types it',
    'svc-server install-service': 'changes the services of the system; test/process/service does it with a stand-in',
    'svc-server service-status': 'asks the systemd of the machine; test/process/service does it with a stand-in',
    'systemctl restart': 'of the service above',
    'svc upgrade': 'of a copy that is installed; test/process/boxes types it',
    'svc login --server': 'a person confirms a code in a browser; test/e2e/sign-in.test.ts does it',
    'svc device install-service': 'changes the services of the system; test/process/service does it with a stand-in',
  },
  'background-service.md': {
    'svc device install-service': 'changes the services of the system',
    'svc device uninstall-service': 'changes the services of the system',
    'sudo useradd': 'makes an account on the machine',
    'sudo -iu svc-agents': 'of the account above',
    'sudo svc device': 'changes the services of the system; test/process/service does it with a stand-in',
  },
  'deployment.md': {
    'control-plane/deploy/build': 'needs docker',
    'sandbox/build': 'needs docker',
    'install -d': 'needs root, and a folder of the machine',
    '(umask 077; cat >/etc/svc.env': 'asks the socket of docker',
    'docker-compose': 'needs docker',
    'cat /srv/svc/login-token': 'of the containers above',
    kubectl: 'needs a cluster',
  },
  'sandbox.md': {
    'sandbox/build': 'needs docker',
    'SVC_SANDBOX=docker svc-server start': 'needs docker, and serves until it is ended',
    'svc agent run @cloudy': 'needs docker; test/sandbox has cloud runs',
    curl: 'is typed in a sandbox; test/sandbox has it',
  },
  'alerts.md': { jq: 'another program, and the log of a server' },
}

/** Commands that nobody can type on a machine that has seen nothing (test/process/boxes/pages.test.ts), by page and how they begin. */
export const notTypedInBoxes: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'install.md': {
    'brew install': 'needs Homebrew',
    'openssl genpkey': 'a release is made from a checkout, on a machine that has a network',
    'npm run release': 'fetches the Node of each platform',
  },
}
