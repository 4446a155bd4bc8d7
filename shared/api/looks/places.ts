import {
  cents,
  count,
  first,
  flag,
  ref,
  say,
  size,
  status,
  text,
  thing,
  time,
  word,
  type Column,
  type Look,
  type Looks,
} from './look.ts'

// Workspaces and their members, devices, folders and repositories.

const workspace: Look = {
  columns: [
    ['SLUG', ref('slug')],
    ['NAME', text('name')],
    ['STATUS', status('status')],
    ['ID', ref('id')],
  ],
  title: text('name'),
  under: [ref('slug'), status('status'), flag('agentsPaused', 'agents are paused')],
  facts: [
    ['ID', ref('id')],
    ['Task keys', say('{issuePrefix}-{issueCounter} was the last')],
    ['Model', text('defaultModel')],
    ['Backup model', text('backupModel')],
    ['Effort', word('defaultReasoningEffort')],
    ['Most turns', count('defaultMaxTurns')],
    ['Monthly budget', cents('monthlyBudgetCents')],
    ['Cloud runs', flag('cloudEnabled', 'on', 'off')],
    ['Sandbox', word('sandboxSize')],
    ['Out of memory', flag('oomResume', 'goes on in a larger sandbox', 'fails')],
    ['Sandboxes reach', text('sandboxEgress')],
    ['Idle compaction', flag('idleCompaction.enabled', 'on', 'off')],
    ['After', say('{idleCompaction.afterMinutes} minutes, from {idleCompaction.minTokens} tokens')],
    ['MCP servers', { as: 'pairs', at: ['mcpServers'] }],
    ['Created', time('createdAt')],
    ['Changed', time('updatedAt')],
  ],
  sections: [
    { heading: '', text: 'description' },
    { heading: 'Context', text: 'contextMd' },
  ],
  next: [{ say: 'svc workspace resume-agents', when: { at: 'agentsPaused', is: [true] } }],
}

/** How much of a limit an account has used. */
export const limitInUseColumns: readonly Column[] = [
  ['PROVIDER', ref('provider')],
  ['USED', say('{usedPercent}%')],
  ['OF', say('the {limit} limit')],
  ['RESETS', time('resetsAt')],
  ['ACCOUNT', word('access')],
  ['TOLD', time('toldAt')],
]

const device: Look = {
  columns: [
    ['ID', ref('publicId')],
    ['NAME', text('displayName')],
    ['STATUS', status('liveness.status', { why: ['claimState.reason'] })],
    ['RUNS', first(say('{claimState.activeRuns} of {maxConcurrent}'), say('0 of {maxConcurrent}'))],
    ['LAST SEEN', time('lastHeartbeatAt')],
    ['DEFAULT', flag('isWorkspaceDefault', 'yes')],
    ['RUNS BY', word('runsBy')],
    ['WALL', word('providerReadiness.isolation')],
    ['PLATFORM', word('platform')],
    ['VERSION', text('version')],
    ['UUID', ref('deviceId')],
  ],
  title: text('displayName'),
  under: [
    ref('publicId'),
    status('liveness.status', { why: ['claimState.reason'] }),
    flag('isWorkspaceDefault', 'default of the workspace'),
  ],
  facts: [
    ['UUID', ref('deviceId')],
    ['Host', text('hostname')],
    ['Platform', word('platform')],
    ['Version', text('version')],
    ['Runs at once', count('maxConcurrent')],
    ['Runs now', count('claimState.activeRuns')],
    ['Takes runs of', word('runsBy')],
    ['Takes none because', text('claimState.message')],
    ['Wall', word('providerReadiness.isolation')],
    ['Last seen', time('lastHeartbeatAt')],
    ['Remote control revoked', time('remoteControlRevokedAt')],
    ['Created', time('createdAt')],
    ['Changed', time('updatedAt')],
  ],
  sections: [
    {
      heading: 'Limits',
      rows: 'limits',
      columns: [
        ['PROVIDER', ref('provider')],
        ['WHY', word('reason')],
        ['OF', word('access')],
        ['SINCE', time('since')],
        ['UNTIL', time('until')],
      ],
    },
    {
      heading: 'Used of limits',
      rows: 'limitsInUse',
      columns: limitInUseColumns,
    },
  ],
}

const folder: Look = {
  columns: [
    ['ID', ref('shortId')],
    ['NAME', text('displayName')],
    ['STATUS', status('status', { why: ['state'] })],
    ['PATH', text('config.rootPath')],
    ['BRANCH', text('branch')],
    ['DEVICE', thing('device', 'config.deviceId')],
    ['REPOSITORY', thing('repo', 'repoId')],
    ['ADDED', time('createdAt')],
  ],
  title: text('displayName'),
  under: [ref('shortId'), status('status', { why: ['state'] })],
  facts: [
    ['Binding', word('config.bindingState')],
    ['Path', text('config.rootPath')],
    ['Branch', text('branch')],
    ['Device', thing('device', 'config.deviceId')],
    ['Repository', thing('repo', 'repoId')],
    ['Added', time('createdAt')],
  ],
}

const repo: Look = {
  columns: [
    ['ID', ref('id')],
    ['NAME', text('name')],
    ['REMOTE', text('gitRemote')],
    ['BRANCH', ref('defaultBranch')],
    ['PROVIDER', word('provider')],
    ['ADDED', time('createdAt')],
  ],
  title: text('name'),
}

const settings: Look = {
  columns: [],
  facts: [
    ['Permission mode', first(word('toolPermissionDefault'), say('ask nothing of it: the default'))],
    ['Most turns', count('maxTurns')],
  ],
}

export const placeLooks: Looks = {
  Workspace: workspace,
  WorkspaceStats: {
    columns: [],
    facts: [
      ['Agents', count('agents')],
      ['Tasks', count('tasks')],
      ['Projects', count('projects')],
      ['Workflows', count('workflows')],
      ['Files', count('files')],
      ['Size of files', size('fileBytes')],
      ['Wiki pages', count('wikiPages')],
      ['Learnings', count('learnings')],
    ],
  },
  UserWorkspace: {
    columns: [
      ['SLUG', ref('slug')],
      ['NAME', text('name')],
      ['ROLE', word('role')],
      ['STATUS', status('status')],
      ['COMPANY', text('companyName')],
      ['ID', ref('id')],
    ],
  },
  WorkspaceExport: { columns: [], facts: [], sections: [{ heading: '', text: 'manifest' }] },
  WorkspaceDeleted: {
    columns: [],
    title: say('The workspace is deleted'),
    facts: [
      ['Company', flag('billing.companyDeleted', 'deleted', 'stays')],
      ['Subscription', flag('billing.subscriptionCancelled', 'cancelled', 'as it was')],
    ],
  },
  WorkspaceLeft: { columns: [], title: say('You left {workspaceId}'), facts: [] },
  Company: {
    columns: [],
    facts: [
      ['ID', ref('id')],
      ['Name', text('name')],
    ],
  },
  CompanyConfig: settings,
  Member: {
    columns: [
      ['NAME', text('name')],
      ['EMAIL', ref('email')],
      ['ROLE', word('role')],
      ['ID', ref('userId')],
    ],
  },
  Device: device,
  Folder: folder,
  FolderRemote: {
    columns: [],
    title: ref('shortId'),
    under: [status('state'), text('branch')],
    facts: [
      ['Commit', ref('commit')],
      ['Address', ref('url')],
      ['Repository', thing('repo', 'repoId')],
    ],
    sections: [
      {
        heading: 'Remotes',
        rows: 'remotes',
        columns: [
          ['NAME', ref('name')],
          ['ADDRESS', ref('url')],
        ],
      },
    ],
  },
  Repo: repo,
}
