import {
  cents,
  count,
  first,
  flag,
  person,
  ref,
  say,
  status,
  text,
  thing,
  time,
  word,
  type Column,
  type Look,
  type Looks,
} from './look.ts'

// Agents, their settings, and what changed them.

const agent: Look = {
  columns: [
    ['ID', ref('id')],
    ['HANDLE', ref('handle')],
    ['STATUS', status('status')],
    ['NAME', text('name')],
    ['LAST RUN', time('lastRunAt')],
    ['HARNESS', word('harness')],
    ['MODEL', text('model')],
    ['WHERE', word('environment')],
    ['ROLE', text('role')],
  ],
  title: text('name'),
  under: [ref('handle'), status('status'), say('{role}')],
  facts: [
    ['ID', ref('id')],
    ['Harness', word('harness')],
    ['Model', text('model')],
    ['Backup model', text('backupModel')],
    ['Runs on', word('environment')],
    [
      'Permission mode',
      first(word('toolPermissionMode'), say("the workspace's; where it has none, every tool is allowed")),
    ],
    ['Folder', thing('folder', 'defaultFolderId')],
    ['Repository', thing('repo', 'defaultRepoId')],
    ['Spent this month', cents('spentMonthlyCents')],
    ['Visible to', word('visibility')],
    ['Reports to', thing('agent', 'reportingTo')],
    ['On assignment', flag('wakeOnAssignment', 'wakes', 'sleeps on')],
    ['On hook', flag('wakeOnHook', 'wakes', 'sleeps on')],
    ['Last run', time('lastRunAt')],
    ['Created', time('createdAt')],
    ['Changed', time('updatedAt')],
    ['Deleted', time('deletedAt')],
  ],
  sections: [{ heading: '', text: 'description' }],
  next: [
    { say: 'svc agent restore {id}', when: { at: 'status', is: ['terminated'] } },
    { say: 'svc agent run {handle} --prompt "..."' },
  ],
}

const warnings = {
  heading: 'Worth a look',
  columns: [
    ['SEVERITY', status('severity')],
    ['MESSAGE', text('message')],
    ['SETTING', ref('param')],
  ],
} as const

const rule = (list: string): Column => [`Rules to ${list}`, text(`config.permissions.tools.${list}`)]

const settings: Look = {
  columns: [],
  title: ref('slug'),
  facts: [
    ['Harness', word('config.runtime.harness')],
    ['Fallback harness', word('config.runtime.fallbackHarness')],
    ['Model', text('config.runtime.model')],
    ['Backup model', text('config.runtime.backupModel')],
    ['Effort', word('config.runtime.reasoningEffort')],
    ['Runs on', word('config.runtime.environment')],
    ['Sandbox', word('config.runtime.sandboxSize')],
    ['Most turns', count('config.runtime.maxTurns')],
    ['Monthly budget', cents('config.runtime.monthlyBudgetCents')],
    ['Command', text('config.runtime.command')],
    ['Protocol', word('config.runtime.protocol')],
    ['Skill folders', text('config.runtime.skillFolders')],
    ['On assignment', flag('config.runtime.triggers.wakeOnAssignment', 'wakes', 'sleeps on')],
    ['On hook', flag('config.runtime.triggers.wakeOnHook', 'wakes', 'sleeps on')],
    [
      'Permission mode',
      first(
        word('config.permissions.tools.defaultMode'),
        say("the workspace's; where it has none, every tool is allowed"),
      ),
    ],
    rule('deny'),
    rule('ask'),
    rule('allow'),
    ['Capabilities', word('config.permissions.capabilities')],
    ['Hash of AGENT.md', ref('agentMdHash')],
  ],
  sections: [{ heading: 'AGENT.md', text: 'agentMd' }],
}

const settingsAfter = (more: Pick<Look, 'sections'>): Look => ({
  ...settings,
  sections: [...(more.sections ?? []), ...(settings.sections ?? [])],
})

export const agentLooks: Looks = {
  Agent: agent,
  AgentWithAudit: { ...agent, sections: [...(agent.sections ?? []), { ...warnings, rows: 'audit' }] },
  AgentSettings: settings,
  'agents.config.put': settingsAfter({ sections: [{ ...warnings, rows: 'audit' }] }),
  'agents.revisions.rollback': settings,
  'agents.history.revert': settings,
  AgentIdentity: {
    columns: [],
    facts: [
      ['Hash', ref('agentMdHash')],
      ['Rules', text('rules')],
    ],
    sections: [{ heading: 'AGENT.md', text: 'agentMd' }],
  },
  AgentDeleted: {
    columns: [],
    title: say('Deleted {agent.name}'),
    under: [ref('agent.handle'), status('agent.status')],
    facts: [
      ['ID', ref('agent.id')],
      ['Unassigned tasks', count('unassignedTasks')],
      ['More of them', flag('hasMore', 'yes')],
    ],
    sections: [
      {
        heading: 'Unassigned tasks',
        rows: 'unassignedTasks',
        columns: [
          ['KEY', ref('key')],
          ['TITLE', text('title')],
        ],
      },
    ],
    next: [{ say: 'svc agent restore {agent.id}' }],
  },
  ConfigRevision: {
    columns: [
      ['ID', ref('id')],
      ['CHANGE', text('changeDescription')],
      ['WHEN', time('createdAt')],
      ['SETTINGS', text('changedKeys')],
      ['BY', word('source')],
    ],
    title: text('changeDescription'),
    facts: [
      ['ID', ref('id')],
      ['Agent', thing('agent', 'agentId')],
      ['Settings', text('changedKeys')],
      ['By', word('source')],
      ['When', time('createdAt')],
    ],
    sections: [
      { heading: 'Before', json: 'beforeConfig' },
      { heading: 'After', json: 'afterConfig' },
    ],
    next: [{ say: 'svc agent revision rollback {agentId} {id}' }],
  },
  AgentHistoryEntry: {
    columns: [
      ['ID', ref('id')],
      ['WHAT', text('description')],
      ['WHEN', time('createdAt')],
      ['KIND', word('kind')],
      ['WHO', person('changedBy')],
      ['REVERTIBLE', flag('isRevertible', 'yes', 'no')],
      ['SETTINGS', text('changedKeys')],
    ],
  },
  AgentAudit: {
    columns: [],
    title: say('Findings about {agent agentId}: {audit}'),
    sections: [{ ...warnings, rows: 'audit' }],
    facts: [],
  },
  AgentSessionsReset: {
    columns: [],
    facts: [
      ['Agent', thing('agent', 'agentId')],
      ['Sessions begin anew since', time('sessionsResetAt')],
    ],
  },
  PlatformChange: {
    columns: [],
    title: say('Waits for a person to approve it'),
    facts: [
      ['Approval', ref('approvalId')],
      ['Status', status('status')],
    ],
    next: [{ say: 'svc approval get {approvalId}' }],
  },
}
