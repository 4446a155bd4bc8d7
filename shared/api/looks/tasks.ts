import {
  caseOf,
  first,
  flag,
  person,
  ref,
  say,
  size,
  status,
  text,
  thing,
  time,
  word,
  type Look,
  type Looks,
} from './look.ts'
import { runLooks } from './runs.ts'

// Tasks and what hangs on them, projects, comments.

const state = status('status', { why: ['conditions.reason', 'conditions.type'] })

const task: Look = {
  columns: [
    ['KEY', ref('key')],
    ['TITLE', text('title')],
    ['STATUS', state],
    ['PRIORITY', status('priority')],
    ['ASSIGNEE', person('assignee')],
    ['UPDATED', time('updatedAt')],
    ['DUE', time('dueAt')],
    ['PULL REQUEST', say('#{pullRequest.number}')],
    ['PROJECT', thing('project', 'projectId')],
  ],
  title: text('title'),
  under: [ref('key'), state, status('priority'), person('assignee')],
  facts: [
    ['ID', ref('id')],
    ['Due', time('dueAt')],
    ['Begins', time('startAt')],
    ['Project', thing('project', 'projectId')],
    ['Parent', thing('task', 'parentTaskId')],
    ['Goal', ref('goalId')],
    ['Workflow', ref('workflowRef')],
    ['Repository', thing('repo', 'repoId')],
    ['Branch', ref('branchName')],
    ['Base branch', ref('baseBranch')],
    ['Pull request', first(say('#{pullRequest.number} {pullRequest.url}'))],
    ['Runs on', word('environment')],
    ['Harness', word('harness')],
    ['Model', text('modelId')],
    ['Effort', word('reasoningEffort')],
    ['Sandbox', word('sandboxSize')],
    ['Created', time('createdAt')],
    ['Created by', person('createdBy')],
    ['Changed', time('updatedAt')],
    ['Started', time('startedAt')],
    ['Done', time('completedAt')],
    ['Cancelled', time('cancelledAt')],
    ['Archived', time('archivedAt')],
  ],
  sections: [
    { heading: '', text: 'description' },
    {
      heading: 'Checklist',
      rows: 'checklist',
      columns: [
        ['DONE', flag('done', 'yes', 'no')],
        ['TEXT', text('text')],
        ['ID', ref('id')],
      ],
    },
  ],
  next: [
    { say: 'svc task assign {key} @...', when: { at: 'assignee', is: [false] } },
    { say: 'svc task get {key} --include runs --include comments' },
  ],
}

const taskRow = [
  ['KEY', ref('key')],
  ['TITLE', text('title')],
  ['STATUS', status('status')],
  ['PRIORITY', status('priority')],
  ['ASSIGNEE', person('assignee')],
] as const

const linked = [...taskRow, ['TYPE', word('type')]] as const

const comment: Look = {
  columns: [
    ['ID', ref('id')],
    ['AUTHOR', person('author')],
    ['BODY', text('body')],
    ['WHEN', time('createdAt')],
    ['FILES', text('attachments.name')],
    ['REPLY TO', ref('parentMessageId')],
  ],
  under: [person('author'), say('of {task taskId}'), time('createdAt')],
  facts: [
    ['ID', ref('id')],
    ['Reply to', ref('parentMessageId')],
    ['Edited', time('updatedAt')],
  ],
  sections: [
    { heading: '', text: 'body' },
    {
      heading: 'Files',
      rows: 'attachments',
      columns: [
        ['ID', ref('id')],
        ['NAME', text('name')],
        ['SIZE', size('sizeBytes')],
        ['TYPE', word('contentType')],
      ],
    },
  ],
}

const dependency: Look = {
  columns: [],
  title: say('{task taskId} depends on {task dependsOnTaskId}'),
  facts: [
    ['Type', word('type')],
    ['Since', time('createdAt')],
  ],
  next: [{ say: 'svc task dependency list {task taskId}' }],
}

/** A sentence for each change; who did it stands before it. */
const whatHappened = caseOf(
  'kind',
  {
    'task.created': first(say('created it for {agent data.assigneeAgentId}'), say('created it: {data.title}')),
    'task.assigned': say('gave it to {agent data.to}'),
    'task.unassigned': first(say('took it from {agent data.from}'), word('kind')),
    'task.status_changed': first(
      say('moved it from {word data.from} to {word data.to}: {data.reason}'),
      say('moved it from {word data.from} to {word data.to}'),
    ),
    'task.updated': first(say('changed {list data.fields}'), word('kind')),
    'task.moved': first(say('put it below {task data.to}'), say('took it out of {task data.from}'), word('kind')),
    'task.archived': say('archived it'),
    'task.unarchived': say('brought it back from the archive'),
    'checklist.item_added': say('added to the checklist: {data.text}'),
    'checklist.item_updated': say('changed in the checklist: {data.text}'),
    'dependency.added': caseOf(
      'data.type',
      { related: say('related it to {data.key}') },
      say('made it wait for {data.key}'),
    ),
    'dependency.removed': say('took {data.key} from what it depends on'),
    'approval.requested': say('asks: {data.prompt}'),
    'approval.approved': say('approved what was asked'),
    'approval.rejected': say('rejected what was asked'),
    'question.asked': say('asks: {data.prompt}'),
    'question.answered': first(say('answered: {data.answer.text}'), say('answered: {list data.answer.selected}')),
    'watcher.added': say('has {who data.subject.id} watch it'),
    'watcher.removed': say('has {who data.subject.id} watch it no more'),
    'comment.posted': say('said: {data.body}'),
    'run.queued': say('has a run that waits: {id}'),
    'run.running': say('works on it: {id}'),
    'run.succeeded': say('worked on it: {id}'),
    'run.failed': first(say('failed at it ({word data.exitReason}): {id}'), say('failed at it: {id}')),
    'run.cancelled': say('was taken off a run: {id}'),
  },
  first(say('{word kind}: {data.title}'), word('kind')),
)

const activity: Look = {
  columns: [
    ['WHEN', time('createdAt')],
    ['WHO', person('actor')],
    ['WHAT', whatHappened],
  ],
}

const checklistItem: Look = {
  columns: [
    ['ID', ref('id')],
    ['TEXT', text('text')],
    ['DONE', flag('done', 'yes', 'no')],
    ['WHEN', time('completedAt')],
    ['BY', person('completedBy')],
  ],
  title: text('text'),
}

const watcher: Look = {
  columns: [
    ['WATCHER', person('subject')],
    ['KIND', word('subject.type')],
    ['ADDED', word('addedBy')],
    ['BECAUSE', text('origin')],
    ['SINCE', time('createdAt')],
  ],
}

const project: Look = {
  columns: [
    ['ID', ref('id')],
    ['NAME', text('name')],
    ['STATUS', status('status')],
    ['PREFIX', ref('prefix')],
    ['LEAD', thing('agent', 'leadAgentId')],
    ['UPDATED', time('updatedAt')],
    ['ABOUT', text('descriptionPreview')],
  ],
  title: text('name'),
  under: [status('status'), ref('prefix')],
  facts: [
    ['ID', ref('id')],
    ['Lead', thing('agent', 'leadAgentId')],
    ['Created', time('createdAt')],
    ['Changed', time('updatedAt')],
  ],
}

export const taskLooks: Looks = {
  Task: task,
  TaskWithIncluded: {
    ...task,
    sections: [
      ...(task.sections ?? []),
      { heading: 'Parent', rows: 'parent', columns: taskRow },
      { heading: 'Subtasks', rows: 'subtasks', columns: taskRow },
      { heading: 'Blocked by', rows: 'dependencies.blockedBy', columns: linked },
      { heading: 'Blocks', rows: 'dependencies.blocking', columns: linked },
      { heading: 'Watchers', rows: 'watchers', columns: watcher.columns },
      { heading: 'Runs', rows: 'runs', columns: runLooks['Run']!.columns },
      { heading: 'Comments', rows: 'comments', columns: comment.columns },
    ],
  },
  TaskChecklistItem: checklistItem,
  TaskDependencies: {
    columns: [],
    title: first(say('{blockedBy} tasks before it, {blocking} after it')),
    facts: [],
    sections: [
      { heading: 'Blocked by', rows: 'blockedBy', columns: linked },
      { heading: 'Blocks', rows: 'blocking', columns: linked },
    ],
  },
  TaskDependency: dependency,
  TaskWatcher: watcher,
  TaskActivity: activity,
  TaskHistoryEntry: { columns: [...activity.columns, ['FROM', word('source')]] },
  TaskReadMark: { columns: [], facts: [['Read up to', time('lastReadAt')]] },
  Comment: comment,
  PullRequest: {
    columns: [],
    title: say('#{number} {title}'),
    under: [status('state', { why: ['checks.state'] }), flag('isDraft', 'draft'), text('author')],
    facts: [
      ['Task', thing('task', 'taskId')],
      ['Repository', ref('repo')],
      ['Address', ref('url')],
      ['Branch', say('{headBranch} into {baseBranch}')],
      ['Commit', ref('headSha')],
      ['Mergeable', flag('isMergeable', 'yes', 'no')],
      ['Checks', say('{checks.passed} passed, {checks.failed} failed, {checks.pending} pending')],
      ['Changes', say('{changedFiles} files, +{additions} -{deletions} in {commits} commits')],
      ['Created', time('createdAt')],
      ['Changed', time('updatedAt')],
      ['Closed', time('closedAt')],
      ['Merged', time('mergedAt')],
    ],
  },
  TaskWhy: {
    columns: [],
    title: text('because'),
    under: [status('state', { why: ['reason'] }), ref('task.key'), say('{since since}')],
    facts: [
      ['Next', text('next')],
      ['At the latest', time('nextAt')],
      ['Run', ref('run')],
    ],
    sections: [
      {
        heading: 'Blocked by',
        rows: 'blockedBy',
        columns: [
          ['KEY', ref('key')],
          ['TITLE', text('title')],
          ['STATUS', status('status')],
          ['ID', ref('id')],
        ],
      },
    ],
    next: [{ say: '{command}', when: { at: 'command', is: [true] } }],
  },
  ProjectSummary: project,
  Project: {
    ...project,
    facts: [
      ...(project.facts ?? []),
      ['Repository', ref('repoUrl')],
      ['Visible to', word('visibility')],
      ['Owner', ref('ownerUserId')],
      ['Deleted', time('deletedAt')],
    ],
    sections: [{ heading: '', text: 'description' }],
    next: [
      { say: 'svc project restore {id}', when: { at: 'deletedAt', is: [true] } },
      { say: 'svc task list --project-id {id}' },
    ],
  },
  ProjectConfig: {
    columns: [],
    facts: [
      ['Status', status('status')],
      ['Prefix', ref('prefix')],
      ['Lead', thing('agent', 'leadAgentId')],
      ['Repository', ref('repoUrl')],
    ],
  },
  ProjectGrant: {
    columns: [
      ['AGENT', ref('agent.handle')],
      ['NAME', text('agent.name')],
      ['ID', ref('agent.id')],
      ['SINCE', time('createdAt')],
    ],
  },
}
