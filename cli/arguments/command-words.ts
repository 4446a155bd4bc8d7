// What commands say of themselves where their route says it for programs: of requests, keys of bodies and statuses. Whoever types a
// command gives flags and names. Read when the tables of commands are made, and at no start of svc.

export interface CommandWords {
  summary?: string
  /** null: nothing beside the summary. */
  description?: string | null
  /** By the names of flags and positionals. */
  words?: Readonly<Record<string, string>>
}

const ofWake =
  'The answer says what became of it: a run, one that waits, or why there is none. With an --idempotency-key that was used for this agent before, the first answer comes again.'
const refusedText = 'A text that fails a check is not published; the refusal names the checks that it failed.'
const refusedProgram = 'Of a program that is refused, the line and the column are named.'
const namedIsWritten = 'What you name is changed; all else stays.'
const deviceWord = 'The device: its name, its `dvc_` id or its UUID. Default: this machine’s.'

export const commandWords: Readonly<Record<string, CommandWords>> = {
  'agent config set': {
    description:
      'What you name is changed, `null` inherits, all else stays. --allow, --remove-allow and the like change a list rule by rule, also at the same time as others do; --replace-allow and the like give another list. An agent changes by itself only its own AGENT.md, models, reasoning effort, sandbox size, harnesses and most turns; any other change of its own waits for a person.',
  },
  'agent list': { summary: 'List the agents you can see, newest first' },
  'agent revert': {
    description:
      'Undoing is a change of its own. An agent undoes only changes of its own settings, and only of those it may change by itself.',
  },
  'agent revision rollback': {
    description:
      'Stores a new revision. An agent rolls back only itself, and waits for a person when more changes than it may change by itself.',
  },
  'agent run': { summary: 'Start a run of an agent', description: ofWake },
  'agent transfer-owner': {
    description:
      'If the giver is no workspace admin, the agent runs on no device of the new owner until they agree: by `svc agent accept`, by starting it, or by changing it.',
  },
  'agent update': { description: 'Its model, its rules and other settings are changed with `svc agent config set`.' },
  'company use': {
    summary: 'Switch to another workspace that you have signed in to on this machine',
    description:
      'A login works in one workspace; svc keeps those of several. An earlier slug of a workspace works, too.',
  },
  'connection create': {
    description:
      'Where there is an active connection to the same service with the same label of the account, it is shown as it is. One that is expired or revoked is made active again, or its sign-in begins anew. A service is one of `svc connection services`, or `mcp-server:ID`: an MCP server, whose runs have the connection once somebody has signed in.',
  },
  'conversation list': { summary: 'List the conversations you can see, those with the latest activity first' },
  'conversation send': {
    description:
      'Prints what the agent says as it says it; the exit status tells how its run ended. Where the connection breaks, svc goes on with the same turn, and nothing is posted twice.',
  },
  costs: {
    description:
      'Counts the runs that you see and that were created in this time; dearest first, days newest first. The newest 20,000 runs are added up at most.',
  },
  'device set': {
    description:
      '--default false does nothing: make another device the default. --remote-control-revoked false gives the control back.',
    words: { device: deviceWord },
  },
  'file download': { summary: 'Download a file' },
  'file list': {
    words: {
      'entity-type': 'Only those that belong to one thing of this kind; with --entity-id.',
      'entity-id': 'Only those that belong to it; with --entity-type.',
    },
  },
  'file read': { summary: 'Print the text of a file' },
  'folder add': { words: { 'device-id': 'The device: its `dvc_` id or its UUID. Default: this machine’s.' } },
  'learning accept': { summary: 'Accept learnings for the wiki' },
  'learning reject': { summary: 'Reject learnings, which then stay out of the wiki' },
  'mcp sign-in': {
    summary: 'Sign in to an MCP server, for the runs that have it',
    description:
      'svc says where to sign in. Where a sign-in with the same label of the account is active, it is shown as it is; one that is expired or revoked begins anew.',
  },
  'mcp tools': {
    description:
      'The server of svc asks it, with the credential of its connection where you may use that. Values that name secrets are filled in for workspace admins.',
  },
  'question answer': {
    description: 'The value that a question for a secret asks for is read from standard input, and not shown.',
  },
  'repo list': { description: 'Shows the first 5,000.' },
  'run create': { summary: 'Start a run of an agent', description: ofWake },
  'run diff': { summary: 'Show what a run changed, as a diff against the commit it began on' },
  'run events': {
    description:
      'With --follow, svc goes on until the run has ended: a terminal shows it as `svc run watch` does, and a pipe gets a line of JSON for each event.',
    words: { after: 'Only what came after this event: its id, or the `nextCursor` of the page before.' },
  },
  'run list': { summary: 'List runs, newest first' },
  'run output': {
    description:
      'For the run itself alone. With --schema the data must fit the JSON Schema of that name, which whoever started the run gave with it; without it any JSON is taken, except of a step of a workflow that asks for an output, which must fit that. A later output replaces an earlier one.',
    words: { schema: 'Name of the schema that the data fits.' },
  },
  'run read': { summary: 'Print what a run answered, or all that its agent said' },
  'skill add': {
    description:
      'Searches for SKILL.md at the root and in the folders of `skills/`, `.agents/skills/` and `.claude/skills/`; with --subdir below that folder, and in its own folders.',
  },
  'task dependency add': { description: 'One that is there already takes the type that you name.' },
  'task history': { description: 'Shows the newest entries of each source, at most --limit.' },
  'task list': { summary: 'List tasks, newest first' },
  'task pull-request': { description: 'Fails with `resource_not_found` for a task that has none.' },
  why: {
    words: {
      'run-or-task':
        'A run: an id such as run_3nB7cW1yHsD5jK9q, or `current` within a run. Or a task: its key, such as WEB-12, or its id.',
    },
  },
  'wiki archive': { summary: 'Archive a page: lists and the search leave it out' },
  'wiki create': { description: refusedText },
  'wiki ingest': {
    summary: 'Bring the texts of a folder into the wiki, and archive the pages whose files are gone',
    description: 'Texts that fail a check are kept and not published.',
  },
  'wiki list': { summary: 'List the pages of the wiki, newest first' },
  'wiki rename': { summary: 'Give a page another slug' },
  'wiki search': { summary: 'Find pages of the wiki by their words, best first' },
  'wiki unarchive': { summary: 'Bring an archived page back' },
  'wiki unsupersede': { description: null },
  'wiki update': { description: refusedText },
  'workflow create': { description: refusedProgram },
  'workflow delete': { description: 'An agent retires only what it wrote.' },
  'workflow update': { description: `${refusedProgram} An agent changes only what it wrote.` },
  'workspace disable-idle-compaction': {
    summary: 'Leave the sessions of agents that idle as they are',
    description: null,
  },
  'workspace enable-idle-compaction': {
    summary: 'Compact the sessions of agents that idle',
    description: null,
  },
  'workspace idle-compaction': {
    summary: 'Choose when the sessions of agents that idle are compacted',
    description: null,
  },
  'workspace update': { description: namedIsWritten },
}
