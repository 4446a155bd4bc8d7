import type { KnownAhead } from './check-resources.ts'

/**
 * The resources that know one which stands after them, and why no effect is registered instead. `docs/architecture.md` shows the
 * table; the import check refuses an import that has no reason here, and a reason that nothing needs.
 */
export const knownAhead: KnownAhead = {
  members: { workspaces: 'routes of members name a workspace' },
  folders: { devices: 'a folder is shown with the state that its device tells of it' },
  agents: {
    workspaces: 'an agent takes its model and its budget from its workspace',
    runs: 'a change of an agent is written with who caused it, and runs that wait are judged anew',
    questions: 'questions of a deleted agent are closed',
    'platform-changes': 'what an agent changes of agents waits for a person',
    approvals: 'a new budget opens or closes the approval that holds runs',
    tasks: 'a deleted agent comes back only once it is taken off all its tasks',
  },
  devices: {
    runs: 'a device tells which runs it executes, and they end with it',
    quotas: 'a device is shown with what its providers keep it from',
  },
  runs: {
    questions: 'a run is shown with what it asked',
    approvals: 'a run is shown with the approvals that hold it',
    quotas: 'placement reads limits of accounts and live runs by one statement',
    sandboxes: 'a run is shown with its sandbox and what that one asked of the network',
    tasks: 'runs are listed by their task, and a retry works on it',
    files: 'a prompt is shown without the files that the caller does not see',
    conversations: 'a message that steers a run is shown with its speaker and its attachments',
  },
  questions: {
    approvals: 'a question is shown with its run and task as an approval is',
    tasks: 'a question is about a task, whose history says what holds it',
    workflows: 'an answer goes to the step that asked',
    conversations: 'a question is posted as a message, and a reply to it is its answer',
  },
  'platform-changes': { approvals: 'a change waits for an approval' },
  approvals: {
    tasks: 'an approval is about a task, whose history says what holds it',
    conversations: 'approvals are listed by their conversation',
  },
  'mcp-servers': { connections: 'a server names the connection whose credential it is sent' },
  tasks: {
    conversations: 'a task has a conversation: its comments',
    workflows: 'what holds a task may be a workflow that is about it',
  },
  files: { conversations: 'a file belongs to a message, and is shown with the name of who made it' },
}
