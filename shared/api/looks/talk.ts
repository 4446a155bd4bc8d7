import {
  choice,
  count,
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

// What waits for people (approvals, questions), and what people and agents say to each other.

const approval: Look = {
  columns: [
    ['ID', ref('id')],
    ['STATUS', status('status', { why: ['result.outcome'] })],
    ['WHAT', text('gatedThing.safeSummary', 'prompt'), 28],
    ['ASKS FOR', word('trigger')],
    ['ASKED BY', person('requestedBy')],
    ['WHEN', time('createdAt')],
    ['FOR', person('assignedTo')],
    ['TASK', thing('task', 'taskId')],
    ['RUN', ref('runId')],
  ],
  title: text('prompt'),
  under: [status('status', { why: ['result.outcome'] }), word('trigger'), person('requestedBy')],
  facts: [
    ['ID', ref('id')],
    ['For', person('assignedTo')],
    ['Tool or thing', text('gatedThing.name')],
    ['Scope', word('gatedThing.scope')],
    ['Task', thing('task', 'taskId')],
    ['Run', ref('runId')],
    ['Workflow run', ref('workflowStep.workflowRunId')],
    ['Change', say('{gatedThing.platformChange.method} {gatedThing.platformChange.path}')],
    ['Expires', time('gatedThing.platformChange.expiresAt')],
    ['Asked', time('createdAt')],
    ['Answered', time('resolvedAt')],
    ['Answered by', person('resolvedBy')],
    ['Applies', word('appliedScope')],
    ['Reason', text('result.reason')],
  ],
  sections: [
    { heading: 'Asks for', text: 'gatedThing.safeSummary' },
    { heading: 'Given to the tool', json: 'gatedThing.toolArgs' },
    { heading: 'New AGENT.md', text: 'gatedThing.instructions.agentMd' },
    { heading: 'As commands', text: 'gatedThing.platformChange.commands' },
  ],
  next: [
    {
      say: 'svc approval approve {id}',
      more: { word: 'or', say: 'svc approval reject {id}' },
      when: { at: 'status', is: ['open'] },
    },
  ],
}

const question: Look = {
  columns: [
    ['ID', ref('id')],
    ['STATUS', status('status')],
    ['QUESTION', text('prompt'), 28],
    ['OPTIONS', text('options.label', 'answerMode')],
    ['ASKED BY', person('askedBy')],
    ['WHEN', time('createdAt')],
    ['ANSWER', first(text('answer.text'), choice('answer.selected', 'options'))],
    ['TASK', thing('task', 'taskId')],
    ['RUN', ref('runId')],
  ],
  title: text('prompt'),
  under: [status('status'), word('answerMode'), person('askedBy')],
  facts: [
    ['ID', ref('id')],
    ['Task', thing('task', 'taskId')],
    ['Run', ref('runId')],
    ['Conversation', ref('conversationId')],
    ['Workflow run', ref('workflowStep.workflowRunId')],
    ['Secret', say('{secretRequest.name} of {secretRequest.provider}, as {secretRequest.envVarName}')],
    ['Because', text('secretRequest.reason')],
    ['Asked', time('createdAt')],
    ['Waits until', time('waitUntil')],
    ['Chosen', choice('answer.selected', 'options')],
    ['Answered', time('answeredAt')],
    ['Answered by', person('answeredBy')],
  ],
  sections: [
    {
      heading: 'Options',
      rows: 'options',
      columns: [
        ['KEY', ref('key')],
        ['LABEL', text('label')],
      ],
    },
    { heading: 'Answer', text: ['answer.text', 'answer.secretId'] },
  ],
  next: [{ say: 'svc question answer {id} "..."', when: { at: 'status', is: ['open'] } }],
}

const conversation: Look = {
  columns: [
    ['ID', ref('id')],
    ['TITLE', first(text('title'), say('Task {task taskId}'), word('kind'))],
    ['UNREAD', count('unreadCount')],
    ['LAST MESSAGE', text('lastMessagePreview')],
    ['WHEN', time('lastActivityAt')],
    ['KIND', word('kind')],
    ['TASK', thing('task', 'taskId')],
    ['AGENTS', count('agentParticipantCount')],
  ],
  title: first(text('title'), say('Conversation of {task taskId}'), ref('id')),
  under: [word('kind'), say('agents {word triggerMode}'), time('lastActivityAt')],
  facts: [
    ['ID', ref('id')],
    ['Task', thing('task', 'taskId')],
    ['Participants', person('participants')],
    ['Messages', count('messageCount')],
    ['Unread', count('unreadCount')],
    ['Created', time('createdAt')],
    ['Created by', person('createdBy')],
    ['Archived', time('archivedAt')],
  ],
  next: [{ say: 'svc conversation message list {id}' }],
}

const message: Look = {
  columns: [
    ['ID', ref('id')],
    ['AUTHOR', person('author')],
    ['BODY', text('body')],
    ['WHEN', time('createdAt')],
    ['FILES', text('attachments.name')],
    ['REPLY TO', ref('parentMessageId')],
  ],
  under: [person('author'), time('createdAt')],
  facts: [
    ['ID', ref('id')],
    ['Conversation', ref('conversationId')],
    ['Task', thing('task', 'taskId')],
    ['Reply to', ref('parentMessageId')],
    ['Mentions', person('mentions')],
    ['Edited', time('editedAt')],
    ['Deleted', time('deletedAt')],
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

export const talkLooks: Looks = {
  Approval: approval,
  ApprovalSummary: approval,
  'approvals.get': {
    ...approval,
    sections: [
      ...(approval.sections ?? []),
      {
        heading: 'Files',
        rows: 'files',
        columns: [
          ['PATH', ref('path')],
          ['SIZE', size('sizeBytes')],
          ['RUNS', flag('executable', 'yes', 'no')],
        ],
      },
    ],
  },
  'approvals.create': { ...approval, of: 'approval' },
  Question: question,
  'questions.get': question,
  'questions.create': { ...question, of: 'question' },
  Conversation: conversation,
  ConversationDetail: {
    ...conversation,
    facts: (conversation.facts ?? []).map(([name, shown]) =>
      name === 'Participants' ? [name, person('participantsExpanded', 'participants')] : [name, shown],
    ),
    sections: [{ heading: 'Messages', rows: 'messages', columns: message.columns }],
  },
  'conversations.read': { columns: [], facts: [['Read up to', time('lastReadAt')]] },
  'conversations.send': { ...message, of: 'message' },
  Message: message,
  'messages.get': {
    ...message,
    sections: [
      ...(message.sections ?? []),
      {
        heading: 'Before',
        rows: 'editHistory',
        columns: [
          ['REPLACED', time('replacedAt')],
          ['BODY', text('body')],
        ],
      },
    ],
  },
}
