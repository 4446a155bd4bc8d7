import {
  count,
  dollars,
  first,
  flag,
  lasting,
  pairs,
  ref,
  say,
  size,
  span,
  status,
  text,
  time,
  word,
  type Look,
  type Looks,
} from './look.ts'

// Runs, their events and their records.

const run: Look = {
  columns: [
    ['ID', ref('id')],
    ['STATUS', status('status', { waits: { at: 'waitingOn.kind' }, why: ['gateReason', 'errorCode'] })],
    ['AGENT', ref('agent.handle')],
    [
      'TASK',
      first(
        say('{task.id} {task.title}'),
        say('{workflowStep.workflow} {workflowStep.label}'),
        text('workflowStep.workflow', 'promptStart'),
      ),
    ],
    ['CREATED', time('createdAt')],
    ['TOOK', span('startedAt', 'completedAt')],
    ['COST', dollars('costUsd')],
    ['WOKEN BY', word('triggerSource')],
    ['DEVICE', text('environment.deviceName', 'environment.type')],
    ['HARNESS', word('harness.id')],
  ],
  title: first(say('{task.id} {task.title}'), text('promptStart'), say('Run of {agent.handle}'), ref('id')),
  under: [
    status('status', { waits: { at: 'waitingOn.kind' }, why: ['exitReason', 'errorCode', 'gateReason'] }),
    ref('agent.handle'),
    say('woken by {word triggerSource}'),
  ],
  facts: [
    ['ID', ref('id')],
    ['Device', text('environment.deviceName', 'environment.type')],
    ['Harness', first(say('{harness.id} {harness.version}'), word('harness.id'))],
    ['Took', span('startedAt', 'completedAt')],
    ['Cost', dollars('costUsd')],
    ['Created', time('createdAt')],
    ['Started', time('startedAt')],
    ['Ended', time('completedAt')],
    ['Waits for', say('{waitingOn.label} ({waitingOn.kind} {waitingOn.id})')],
    ['Waits because', text('gateDescription')],
    ['Workflow run', ref('workflowStep.workflowRunId')],
    ['Step', first(say('{workflowStep.step} {workflowStep.label}'), count('workflowStep.step'))],
  ],
  next: [
    { say: 'svc question answer {waitingOn.id} "..."', when: { at: 'waitingOn.kind', is: ['question'] } },
    { say: 'svc approval get {waitingOn.id}', when: { at: 'waitingOn.kind', is: ['approval'] } },
    { say: 'svc run watch {id}', when: { at: 'status', is: ['queued', 'running'] } },
    { say: 'svc run retry {id}', when: { at: 'status', is: ['failed', 'cancelled'] } },
    { say: 'svc run read {id}' },
  ],
}

const event: Look = {
  columns: [
    ['SEQ', count('seq')],
    ['KIND', word('kind')],
    ['DATA', pairs('data')],
    ['WHEN', time('createdAt')],
  ],
  title: word('kind'),
  under: [say('event {seq} of {runId}'), time('createdAt')],
  facts: [['ID', ref('id')]],
  sections: [{ heading: '', json: 'data' }],
}

const leftOut = (heading: string, rows: string) =>
  ({
    heading,
    rows,
    columns: [
      ['NAME', text('name')],
      ['WHY', text('reason')],
    ],
  }) as const

export const runLooks: Looks = {
  Run: run,
  RunDetail: {
    ...run,
    facts: [
      ...(run.facts ?? []),
      ['Model', text('effectiveSettings.modelId')],
      ['Effort', word('effectiveSettings.reasoningEffort')],
      ['Permission mode', word('effectiveSettings.mode')],
      ['Tool calls', count('toolCallCount')],
      ['Sandbox', say('{sandbox.id} ({sandbox.size})')],
      ['Retry of', ref('parentRunId')],
      ['Retried as', ref('successorRunId')],
      ['Conversation', ref('conversationId')],
      [
        'Start',
        first(
          say(
            'offered after {took timings.offeredMs}, launched after {took timings.launchedMs}, first output after {took timings.firstOutputMs}',
          ),
          say('offered after {took timings.offeredMs}, launched after {took timings.launchedMs}'),
          say('offered after {took timings.offeredMs}'),
        ),
      ],
      [
        'End',
        say(
          'harness gone after {took timings.endedMs}, reported after {took timings.reportedMs}, written down after {took timings.storedMs}',
        ),
      ],
    ],
    sections: [
      { heading: 'Error', text: 'errorMessage', unless: 'waitingOn.kind' },
      { heading: 'Answer', text: 'transcriptRead.finalAnswer' },
      { heading: 'Latest events', rows: 'latestEvents', columns: event.columns },
    ],
  },
  RunWhy: {
    columns: [],
    title: text('because'),
    under: [status('state', { why: ['reason'] }), ref('run'), say('{since since}')],
    facts: [
      ['Next', text('next')],
      ['At the latest', time('nextAt')],
    ],
    next: [{ say: '{command}', when: { at: 'command', is: [true] } }],
  },
  RunEvent: event,
  RunContext: { columns: [], sections: [{ heading: '', text: 'prompt' }], facts: [] },
  RunManifest: {
    columns: [],
    title: say('Setup of {runId}'),
    under: [ref('agent.handle'), word('harness')],
    facts: [
      ['Version', text('harnessVersion')],
      ['Model', text('model')],
      ['Backup model', text('backupModel')],
      ['Effort', word('reasoningEffort')],
      ['Most turns', count('maxTurns')],
      ['Ignored settings', word('ignored')],
      ['Folder', first(say('{folder.rootPath} ({folder.shortId})'))],
      ['Branch', text('repo.branch')],
      ['Permission mode', word('permissions.defaultMode')],
      ['Rules to deny', text('permissions.deny')],
      ['Rules to ask', text('permissions.ask')],
      ['Rules to allow', text('permissions.allow')],
      ['Rules', text('rules')],
      ['Skills', text('skills.name')],
      ['MCP servers', text('mcpServers.given')],
      ['Variables', text('envKeys')],
    ],
    sections: [
      {
        heading: 'Instructions',
        rows: 'instructions',
        columns: [
          ['NAME', text('name')],
          ['SHA256', text('sha256')],
        ],
      },
      leftOut('Skills left out', 'skillsLeftOut'),
      leftOut('MCP servers left out', 'mcpServers.leftOut'),
      leftOut('Variables left out', 'envKeysLeftOut'),
      {
        heading: 'Wall',
        rows: 'wall',
        columns: [
          ['ACT', word('act')],
          ['OUTCOME', status('outcome')],
          ['SEEN', text('seen')],
        ],
      },
    ],
  },
  RunNetwork: {
    columns: [],
    title: say('Network of {runId}'),
    facts: [['Hosts', count('hosts')]],
    sections: [
      {
        heading: '',
        rows: 'hosts',
        columns: [
          ['HOST', ref('host')],
          ['DECISION', status('decision')],
          ['REQUESTS', count('requests')],
          ['SENT', size('bytesSent')],
          ['RECEIVED', size('bytesReceived')],
          ['LAST', time('lastAt')],
          ['FIRST', time('firstAt')],
        ],
      },
    ],
  },
  RunCost: {
    columns: [],
    title: say('What {runId} cost'),
    facts: [
      ['Cost', first(dollars('costUsd'), say('not known'))],
      ['Took', lasting('durationMs')],
      ['Model', ref('model')],
      ['State', flag('isFinal', 'final', 'the run still works')],
      ['Tokens in', count('inputTokens')],
      ['Tokens out', count('outputTokens')],
      ['Read from cache', count('cacheReadTokens')],
      ['Written to cache', count('cacheWriteTokens')],
    ],
    next: [{ say: 'svc costs --by task' }],
  },
  Cost: {
    columns: [
      ['NAME', text('name')],
      ['COST', dollars('costUsd')],
      ['RUNS', count('runs')],
      ['UNKNOWN', count('runsWithoutCost')],
      ['TOOK', lasting('durationMs')],
      ['TOKENS IN', count('inputTokens')],
      ['TOKENS OUT', count('outputTokens')],
      ['CACHE READ', count('cacheReadTokens')],
      ['CACHE WRITTEN', count('cacheWriteTokens')],
      ['ID', ref('id')],
    ],
  },
  RunChangeSet: {
    columns: [],
    title: say('{runId} changed {files} files: +{additions} -{deletions}'),
    facts: [
      ['Begun on', first(say('{base.branch} {base.commit}'), ref('base.commit'))],
      ['Ended on', first(say('{head.branch} {head.commit}'), ref('head.commit'))],
      ['Taken', time('capturedAt')],
      ['State', flag('live', 'the run still works', 'final')],
      ['Shared with', ref('sharedWith')],
    ],
    sections: [
      {
        heading: '',
        rows: 'files',
        columns: [
          ['STATUS', status('status')],
          ['PATH', ref('path')],
          ['ADDED', count('additions')],
          ['DELETED', count('deletions')],
          ['WAS', text('oldPath')],
        ],
      },
    ],
    next: [{ say: 'svc run diff {runId}' }],
  },
  'runs.output': {
    columns: [],
    title: say('The output of {runId} is recorded'),
    facts: [],
    next: [{ say: 'svc run result {runId}' }],
  },
  RunOutput: {
    columns: [],
    title: say('Output of {runId}'),
    facts: [
      ['Schema', ref('schema')],
      ['Recorded', time('recordedAt')],
    ],
    sections: [{ heading: '', json: 'data' }],
  },
  'runs.retry': {
    columns: [],
    title: say('{runId} runs it again'),
    facts: [['Run', ref('runId')]],
    next: [{ say: 'svc run watch {runId}' }],
  },
  StartRunReply: {
    columns: [],
    title: first(
      say('{runPublicId} waits ({word gateReason})'),
      say('{runPublicId} was declined ({word exitReason})'),
      say('{runPublicId} is queued'),
      say('{coalescedIntoRunPublicId} takes it up'),
      say('No run came of it ({word reason})'),
    ),
    facts: [
      ['Run', ref('runPublicId', 'coalescedIntoRunPublicId')],
      ['Kind', word('kind')],
      ['Waits because', word('gateReason')],
      ['Why', text('message')],
      ['Blocked by', say('{blockedBy.kind} {blockedBy.id}')],
    ],
    next: [
      { say: 'svc run watch {runPublicId}', when: { at: 'kind', is: ['queued', 'pending'] } },
      { say: 'svc run watch {coalescedIntoRunPublicId}', when: { at: 'kind', is: ['coalesced'] } },
    ],
  },
  Sandbox: {
    columns: [
      ['ID', ref('id')],
      ['STATE', status('state')],
      ['RUN', ref('runId')],
      ['SINCE', time('stateAt')],
      ['TROUBLE', text('trouble')],
      ['SIZE', word('size')],
      ['CREATED', time('createdAt')],
      ['REMOVED', time('removedAt')],
      ['IMAGE', text('image')],
    ],
  },
  SandboxLog: { columns: [], title: say('Log of {sandboxId}'), facts: [], sections: [{ heading: '', text: 'log' }] },
}
