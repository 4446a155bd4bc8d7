import { count, first, flag, person, ref, say, status, text, thing, time, word, type Look, type Looks } from './look.ts'

// Automations and workflows.

const schedule = first(
  say('{trigger.cron} ({trigger.timezone})'),
  say('{trigger.event} of {trigger.repo}'),
  word('trigger.type'),
)

const automation: Look = {
  columns: [
    ['ID', ref('id')],
    ['NAME', text('name')],
    ['STATUS', status('status')],
    ['RUNS ON', schedule],
    ['NEXT', time('nextRunAt')],
    ['LAST RUN', status('lastRun.status')],
    ['WHEN', time('lastRun.startedAt')],
    ['STARTS', first(say('workflow {workflow}'), thing('agent', 'agentId'))],
  ],
  title: text('name'),
  under: [status('status'), schedule],
  facts: [
    ['ID', ref('id')],
    ['Agent', thing('agent', 'agentId')],
    ['Workflow', ref('workflow')],
    ['Next run', time('nextRunAt')],
    [
      'Last run',
      first(
        say('{lastRun.status} ({lastRun.id})'),
        say('{lastRun.status} ({lastRun.workflowRunId})'),
        word('lastRun.status'),
      ),
    ],
    ['Last started', time('lastRun.startedAt')],
    ['Webhook', ref('webhookUrl')],
    ['Model', text('modelId')],
    ['Runs in', word('environment')],
    ['When it still runs', word('concurrencyPolicy')],
    ['Project', thing('project', 'projectId')],
    ['Created', time('createdAt')],
    ['Created by', person('createdBy')],
    ['Changed', time('updatedAt')],
    ['Archived', time('archivedAt')],
  ],
  sections: [
    { heading: '', text: 'description' },
    { heading: 'Prompt', text: 'prompt' },
  ],
  next: [
    { say: 'svc automation resume {id}', when: { at: 'status', is: ['paused'] } },
    { say: 'svc automation unarchive {id}', when: { at: 'status', is: ['archived'] } },
    { say: 'svc automation runs {id}' },
  ],
}

const inputs = {
  heading: 'Inputs',
  rows: 'inputs',
  columns: [
    ['KEY', ref('key')],
    ['KIND', word('kind')],
    ['NEEDED', flag('required', 'yes', 'no')],
    ['LABEL', text('label')],
  ],
} as const

const workflow: Look = {
  columns: [
    ['NAME', ref('name')],
    ['TITLE', text('title')],
    ['LAST RUN', status('lastRun.status')],
    ['WHEN', time('lastRun.startedAt')],
    ['RUNS', count('runCount')],
    ['INPUTS', text('inputs.key')],
    ['TOOLS', word('toolPermissionMode')],
    ['VERSION', count('version')],
    ['AUTHOR', person('author')],
    ['ABOUT', text('description')],
  ],
  title: text('title'),
  under: [ref('name'), say('version {version}'), say('tools: {toolPermissionMode}')],
  facts: [
    ['ID', ref('id')],
    ['Author', person('author')],
    ['Created', time('createdAt')],
    ['Changed', time('updatedAt')],
    ['Retired', time('retiredAt')],
  ],
  sections: [{ heading: '', text: 'description' }, inputs],
  next: [{ say: 'svc workflow start {name}' }],
}

const workflowRun: Look = {
  columns: [
    ['ID', ref('id')],
    ['WORKFLOW', ref('workflow')],
    ['STATUS', status('status', { waits: { at: 'parkedQuestion.prompt', as: 'question' } })],
    ['STARTED', time('startedAt')],
    ['TOOK', { as: 'span', at: 'startedAt', to: 'completedAt' }],
    ['TASK', first(say('{task.id} {task.title}'))],
    ['STEPS', count('steps')],
    ['OUTCOME', text('summary', 'error.message')],
  ],
  title: say('Run of {workflow}'),
  under: [status('status'), ref('id'), time('startedAt')],
  facts: [
    ['Took', { as: 'span', at: 'startedAt', to: 'completedAt' }],
    ['Task', first(say('{task.id} {task.title}'))],
    ['Permission mode', word('toolPermissionMode')],
    ['Input', { as: 'pairs', at: ['input'] }],
    ['Asks', say('{parkedQuestion.prompt} ({parkedQuestion.id})')],
    ['Waits for checks of', say('{parkedChecks.branch} until {time parkedChecks.deadlineAt}')],
    ['Failed at', say('line {error.line}, column {error.column}')],
  ],
  sections: [
    { heading: 'Summary', text: 'summary' },
    { heading: 'Error', text: 'error.message' },
    {
      heading: 'Checks',
      rows: 'parkedChecks.checks',
      columns: [
        ['NAME', text('name')],
        ['STATUS', status('status')],
        ['ADDRESS', ref('url')],
      ],
    },
    {
      heading: 'Steps',
      rows: 'steps',
      columns: [
        ['STEP', count('stepOrdinal')],
        ['STATE', status('state')],
        ['RUN', status('run.status', { why: ['run.error', 'run.exitReason'] })],
        ['LABEL', text('label', 'phase', 'gate.argv')],
        ['AGENT', person('agent')],
        ['RUN ID', ref('run.id', 'pendingApproval.id')],
        ['STARTED', time('dispatchedAt')],
        ['ERROR', text('error.message')],
      ],
    },
    { heading: 'Log', text: 'log' },
  ],
  next: [
    { say: 'svc question answer {parkedQuestion.id} "..."', when: { at: 'parkedQuestion', is: [true] } },
    { say: 'svc workflow runs watch {id}', when: { at: 'status', is: ['running', 'stalled'] } },
  ],
}

const started: Look = {
  ...workflowRun,
  facts: [['Task', thing('task', 'taskId')], ...(workflowRun.facts ?? []).filter(([name]) => name !== 'Task')],
  sections: (workflowRun.sections ?? []).filter(({ heading }) => heading !== 'Steps'),
}

export const workLooks: Looks = {
  Automation: automation,
  AutomationFire: {
    columns: [],
    title: first(say('Started {runId}'), say('Skipped ({word reason})'), word('kind')),
    facts: [
      ['Run', ref('runId')],
      ['Because', word('reason')],
    ],
    next: [{ say: 'svc run watch {runId}' }],
  },
  AutomationSkip: {
    columns: [
      ['WHEN', time('createdAt')],
      ['BECAUSE', word('reason')],
      ['MESSAGE', text('message')],
    ],
  },
  WorkflowRow: workflow,
  Workflow: { ...workflow, sections: [...(workflow.sections ?? []), { heading: 'Source', text: 'source' }] },
  WorkflowProgram: {
    columns: [
      ['NAME', ref('name')],
      ['TITLE', text('title')],
      ['INPUTS', text('inputs.key')],
      ['TOOLS', word('toolPermissionMode')],
      ['ABOUT', text('description')],
    ],
  },
  WorkflowRun: workflowRun,
  StartedWorkflowRun: started,
  WorkflowSource: { columns: [], title: ref('name'), facts: [], sections: [{ heading: '', text: 'source' }] },
}
