import { limitInUseColumns } from '../../shared/api/looks/places.ts'
import { taskLooks } from '../../shared/api/looks/tasks.ts'
import { copyLooks } from './copy-looks.ts'
import {
  count,
  dollars,
  first,
  flag,
  person,
  ref,
  say,
  size,
  status,
  text,
  time,
  word,
  type Look,
  type Looks,
} from '../../shared/api/looks/look.ts'

// The looks of what commands make themselves: by the name of the command.

const saved: Look = { columns: [], title: say('Saved as {path}'), facts: [['Size', size('sizeBytes')]] }

const spooled: Look = {
  columns: [
    ['RUN', ref('runId')],
    ['ENDED', flag('ended', 'yes', 'no')],
    ['EVENTS', count('rows')],
    ['SIZE', size('bytes')],
    ['LAST', count('lastSeq')],
    ['ACKNOWLEDGED', count('ackedSeq')],
    ['FENCE', count('fence')],
  ],
}

const reviewed: Look = {
  columns: [
    ['LEARNING', ref('learningId')],
    ['DONE', flag('ok', 'yes', 'no')],
    ['STATUS', status('status')],
    ['WHY NOT', text('message', 'code')],
  ],
}

const task = taskLooks['TaskWithIncluded']!

export const localLooks: Looks = {
  ...copyLooks,
  'task get --history': {
    ...task,
    sections: [
      ...(task.sections ?? []),
      { heading: 'History', rows: 'history', columns: taskLooks['TaskHistoryEntry']!.columns },
    ],
  },
  status: {
    columns: [],
    title: text('summary'),
    facts: [],
    sections: [
      {
        heading: 'Approvals',
        rows: 'approvals',
        columns: [
          ['ID', ref('id')],
          ['ASKS FOR', text('gatedThing.safeSummary', 'prompt'), 32],
          ['ASKED BY', person('requestedBy')],
          ['WHEN', time('createdAt')],
        ],
      },
      {
        heading: 'Questions',
        rows: 'questions',
        columns: [
          ['ID', ref('id')],
          ['QUESTION', text('prompt'), 28],
          ['OPTIONS', text('options.label')],
          ['ASKED BY', person('askedBy')],
          ['WHEN', time('createdAt')],
        ],
      },
      {
        heading: 'Failed',
        rows: 'failed',
        columns: [
          ['RUN', ref('id')],
          ['AGENT', ref('agent.handle')],
          ['WHY', word('errorCode')],
          ['TASK', first(say('{task.id} {task.title}'), text('workflowStep.workflow', 'promptStart'))],
          ['WHEN', time('completedAt')],
        ],
      },
      {
        heading: 'At work',
        rows: 'working',
        columns: [
          ['RUN', ref('id')],
          ['AGENT', ref('agent.handle')],
          ['TASK', first(say('{task.id} {task.title}'), text('workflowStep.workflow', 'promptStart'))],
          ['LAST LINE', text('lastLine'), 28],
          ['SINCE', time('startedAt')],
          ['COST', dollars('costUsd')],
          ['DEVICE', text('environment.deviceName', 'environment.type')],
        ],
      },
      {
        heading: 'Waiting',
        rows: 'waiting',
        columns: [
          ['RUN', ref('id')],
          ['AGENT', ref('agent.handle')],
          ['TASK', first(say('{task.id} {task.title}'), text('workflowStep.workflow', 'promptStart'))],
          ['WHY', text('gateDescription')],
          ['SINCE', time('createdAt')],
        ],
      },
      {
        heading: 'Limits of providers',
        rows: 'limits',
        columns: [
          ['PROVIDER', ref('provider')],
          ['WHY', word('reason')],
          ['OF', word('access')],
          ['SINCE', time('since')],
          ['UNTIL', time('until')],
          ['DEVICE', text('device')],
        ],
      },
      {
        heading: 'Used of limits',
        rows: 'limitsInUse',
        columns: [...limitInUseColumns, ['DEVICE', text('device')]],
      },
      {
        heading: 'Devices away',
        rows: 'away',
        columns: [
          ['ID', ref('publicId')],
          ['NAME', text('displayName')],
          ['LAST SEEN', time('lastHeartbeatAt')],
        ],
      },
    ],
    next: [{ say: '{next}', more: { word: 'then', say: '{answer}' }, when: { at: 'next', is: [true] } }],
  },
  search: {
    columns: [],
    title: text('summary'),
    facts: [],
    sections: [
      { heading: 'Tasks', rows: 'tasks', columns: taskLooks['Task']!.columns.slice(0, 5) },
      {
        heading: 'Wiki',
        rows: 'wiki',
        columns: [
          ['SLUG', ref('slug')],
          ['TITLE', text('title')],
          ['FOUND', text('match.text')],
          ['UPDATED', time('updatedAt')],
        ],
      },
      {
        heading: 'Files',
        rows: 'files',
        columns: [
          ['ID', ref('id')],
          ['NAME', text('name')],
          ['SIZE', size('sizeBytes')],
          ['ABOUT', text('description')],
        ],
      },
    ],
  },
  'config list': {
    columns: [
      ['SETTING', ref('name')],
      ['VALUE', ref('value')],
      ['FROM', text('from')],
    ],
  },
  'config set': { columns: [], title: say('{name} is {value}'), facts: [['Kept in', ref('from')]] },
  whoami: {
    columns: [],
    title: first(
      say('{person.name} ({person.email})'),
      say('{agent.name} ({agent.handle})'),
      say('{kind} of {workspace.slug}'),
    ),
    facts: [
      ['Role', word('role')],
      ['Workspace', say('{workspace.name} ({workspace.slug})')],
      ['Server', ref('server')],
      ['Run', ref('runId')],
      ['ID', ref('person.userId', 'agent.id')],
      ['Workspace ID', ref('workspace.id')],
    ],
  },
  login: {
    columns: [],
    title: say('Signed in to {server}'),
    facts: [
      ['Workspace', first(say('{workspace.name} ({workspace.slug})'), text('workspace'))],
      ['Role', word('role')],
      ['Kept in', ref('file')],
    ],
    next: [{ say: 'svc whoami' }],
  },
  logout: {
    columns: [],
    title: flag('signedOut', 'Signed out; nothing is revoked', 'Nobody was signed in'),
    facts: [['Was kept in', ref('file')]],
  },
  'company use': {
    columns: [],
    title: first(say('Now in {workspace.name} ({workspace.slug})'), say('Now in {workspace}')),
    facts: [['Server', ref('server')]],
  },
  'auth list': {
    columns: [
      ['ID', ref('id')],
      ['NAME', text('name')],
      ['CURRENT', flag('isCurrent', 'yes', 'no')],
      ['LAST USED', time('lastUsedAt')],
      ['CREATED', time('createdAt')],
      ['OF', ref('email')],
    ],
  },
  'auth devices': {
    columns: [
      ['ID', ref('id')],
      ['NAME', text('name')],
      ['OF', ref('email')],
      ['LAST SEEN', time('lastSeenAt')],
    ],
  },
  'auth revoke': { columns: [], title: say('{id} is revoked'), facts: [] },
  'device connect': {
    columns: [],
    title: say('{displayName} is a device of {server}'),
    facts: [
      ['ID', ref('publicId')],
      ['Link', status('link')],
      ['Process', count('pid')],
      ['UUID', ref('deviceId')],
    ],
    next: [{ say: 'svc folder add NAME PATH' }],
  },
  'device disconnect': {
    columns: [],
    title: flag('disconnected', 'Disconnected', 'This machine was no device'),
    facts: [['ID', ref('publicId')]],
  },
  'device restart': {
    columns: [],
    title: say('The device manager is restarted'),
    facts: [
      ['Process', count('pid')],
      ['Link', status('link')],
    ],
  },
  'device install-service': {
    columns: [],
    facts: [
      ['File', ref('file')],
      ['Changed', flag('changed', 'yes', 'no')],
    ],
  },
  'device sync-config': {
    columns: [],
    title: text('displayName'),
    facts: [
      ['Runs at once', count('capacity')],
      ['Remote control', flag('remoteControlRevoked', 'revoked', 'allowed')],
    ],
  },
  'device refresh harnesses': {
    columns: [
      ['HARNESS', ref('harness')],
      ['INSTALLED', flag('installed', 'yes', 'no')],
      ['VERSION', text('version')],
      ['SIGNED IN', flag('signedIn', 'yes', 'no')],
      ['MESSAGE', text('message')],
    ],
  },
  'device refresh folders': {
    columns: [
      ['ID', ref('shortId')],
      ['PATH', text('rootPath')],
      ['OK', flag('ok', 'yes', 'no')],
      ['MESSAGE', text('message')],
    ],
  },
  'device spool': spooled,
  'device spool replay': {
    columns: [],
    title: say('{rows} events of {runs} runs are sent again'),
    facts: [],
  },
  'device test-error': {
    columns: [],
    facts: [
      ['Error', ref('errorId')],
      ['Log', ref('logPath')],
      ['Errors so far', count('count')],
    ],
  },
  'device isolation': {
    columns: [],
    facts: [
      ['Wall', word('level')],
      ['By', text('tool')],
      ['Chosen', word('choice')],
      ['Message', text('message')],
    ],
  },
  'file download': saved,
  'wiki get': saved,
  'wiki ingest': {
    columns: [],
    title: say('{root} is in the wiki'),
    facts: [
      ['Created', count('created')],
      ['Updated', count('updated')],
      ['Archived', count('archived')],
      ['Unchanged', count('unchanged')],
    ],
    sections: [
      { heading: 'Missing', text: 'missing' },
      {
        heading: 'Failed',
        rows: 'failed',
        columns: [
          ['PATH', ref('path')],
          ['CHECKS', word('checks')],
        ],
      },
      {
        heading: 'Skipped',
        rows: 'skipped',
        columns: [
          ['PATH', ref('path')],
          ['WHY', text('reason')],
        ],
      },
    ],
  },
  'learning review': reviewed,
}
