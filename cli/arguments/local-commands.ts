import type { Command } from './command.ts'
import { copyCommands } from './copy-commands.ts'
import { flag, local, yes } from './local-command.ts'

// Commands that are not routes of the API: the login, this machine's device, and svc itself.

const loginCommands = [
  local({
    name: 'login',
    summary: 'Sign in: store the address of a server and a login token on this machine',
    description:
      'Without --server and --token it uses the server that runs on this machine and the login token of its first person. With --server alone, on a terminal, it shows a code to enter on a page of the server.',
    example: 'svc login --server https://svc.example.com',
    flags: [
      flag('server', 'Address of the server.', { aliases: ['base-url'] }),
      flag('token', 'The login token; `-` reads it from standard input, where no other program can see it.'),
      flag('browser', 'Open the page for the code in a browser, even without a terminal.', yes),
    ],
  }),
  local({
    name: 'logout',
    summary: 'Forget the login of this machine; nothing else is revoked',
    example: 'svc logout',
  }),
  local({
    name: 'auth list',
    summary: 'List your valid login tokens of this workspace; the tokens themselves are not shown',
    example: 'svc auth list',
    flags: [
      flag('all', 'List the tokens of everybody in the workspace, for admins.', yes),
      flag('after', '`nextCursor` of the previous page.'),
    ],
  }),
  local({
    name: 'auth devices',
    summary: 'List the devices of everybody in the workspace, for admins',
    example: 'svc auth devices',
  }),
  local({
    name: 'auth revoke',
    summary: 'Revoke a login token of yours, or as an admin anybody’s token or device; it stops working at once',
    example: 'svc auth revoke tok_2bX7mR4kJ9sQ1wZe',
    positionals: [{ name: 'id', target: null, description: 'An id that `svc auth list` or `svc auth devices` shows.' }],
  }),
  local({
    name: 'whoami',
    summary: 'Show the caller: the person or the agent, the workspace, the server',
    example: 'svc whoami',
  }),
]

const deviceCommands = [
  local({
    name: 'device connect',
    summary: 'Make this machine a device of your workspace and start its device manager',
    example: 'svc device connect --name "my laptop"',
    flags: [
      flag('name', 'Name shown for the device. Default: the host name.'),
      flag('foreground', 'Run the device manager in this terminal instead of the background.', yes),
    ],
  }),
  local({
    name: 'device disconnect',
    summary: 'Stop the device manager and revoke the token of this device; refused while runs are active',
    example: 'svc device disconnect',
    flags: [flag('local', 'Forget the server without asking it, where it is gone for good.', yes)],
  }),
  local({
    name: 'device status',
    summary: 'Show the device manager of this machine, its link, its runs, and its problems',
    example: 'svc device status',
  }),
  local({
    name: 'device refresh',
    summary: 'Check the folders and harnesses of this machine again',
    example: 'svc device refresh',
  }),
  local({
    name: 'device sync-config',
    summary: "Get this device's settings from the server now",
    example: 'svc device sync-config',
  }),
  local({
    name: 'device restart',
    summary: 'Restart the device manager; live runs go on under the new one',
    example: 'svc device restart --drain',
    flags: [flag('drain', 'Take no new runs and wait up to 30 minutes for the live ones to end first.', yes)],
  }),
  local({
    name: 'device install-service',
    summary: 'Let systemd or launchd keep the device manager of this machine running, from login to login',
    description:
      'Installs a systemd user unit on Linux and a launchd agent on macOS. Type it again after Node or svc moved, or your PATH changed. A running device manager is replaced; its runs go on.',
    example: 'svc device install-service',
  }),
  local({
    name: 'device uninstall-service',
    summary: 'Stop the device manager and remove its service; refused while runs are active',
    example: 'svc device uninstall-service',
  }),
  local({
    name: 'device logs',
    summary: 'Show the last lines of the log of the device manager',
    example: 'svc device logs --lines 50 --follow',
    flags: [
      flag('lines', 'How many lines.', { kind: 'number', default: 200 }),
      flag('follow', 'Go on printing lines as they come.', yes),
    ],
  }),
  local({
    name: 'device spool',
    summary: 'Show the run events on this machine that the server has not acknowledged',
    example: 'svc device spool --replay',
    flags: [flag('replay', 'Send them again.', yes), flag('run', 'With --replay: send only the events of this run.')],
  }),
  local({
    name: 'device test-error',
    summary: 'Report a test error through the device manager, to see where errors go',
    example: 'svc device test-error',
    flags: [flag('message', 'Text of the error.')],
  }),
]

const permissionsAgent = {
  name: 'agent',
  target: null,
  isOptional: true,
  description: 'An agent: an `agt_` id, a @handle, a name or a UUID. Default: me, the agent of the run.',
  refers: 'agent',
} as const
const ruleFlags = (verb: string) =>
  ['deny', 'ask', 'allow'].map((list) => flag(list, `A rule to ${verb} the ${list} list.`, { repeatable: true }))

const agentCommands = [
  local({
    name: 'agent permissions list',
    summary: 'Show the permission rules of an agent, its mode, and the rules that cannot be read or name no tool',
    example: 'svc agent permissions list @builder',
    positionals: [permissionsAgent],
  }),
  local({
    name: 'agent permissions add',
    summary: 'Add permission rules to the lists of an agent; all others stay',
    description: 'A rule is the name of a tool, or a name with a pattern for its input (docs/permissions.md).',
    example: "svc agent permissions add @builder --deny 'Bash(rm:*)' --allow Read",
    positionals: [permissionsAgent],
    flags: ruleFlags('add to'),
  }),
  local({
    name: 'agent permissions remove',
    summary: 'Take permission rules from the lists of an agent; refused when a rule is not there',
    example: 'svc agent permissions remove @builder --allow Read',
    positionals: [permissionsAgent],
    flags: ruleFlags('take from'),
  }),
  local({
    name: 'agent permissions check',
    summary: 'Tell what a run of the agent would answer to a tool call, and which rule says so; nothing is run',
    description:
      'The rules are those of the next run: the lists of the agent, and its mode or that of the workspace (docs/permissions.md). --input is the command of Bash, the path of Read, Write, Edit, LS and Grep, the pattern of Glob, the address of WebFetch, the query of WebSearch; `@file` is the text of a file (`@-`: standard input), of JSON for all other tools.',
    example: 'svc agent permissions check @builder --tool Bash --input "git push"',
    positionals: [permissionsAgent],
    flags: [
      flag('tool', 'Name of the tool, such as Bash, Write or mcp__github__create_issue.', { required: true }),
      flag('input', 'What the tool is given, as text.'),
      flag('input-json', 'The whole input of the tool, as a JSON object.', { kind: 'json' }),
      flag('cwd', "Folder of the run. Default: the agent's folder, else this one."),
    ],
  }),
]

const ownCommands = [
  local({
    name: 'run watch',
    summary: 'Follow a run to its end, as the session of its agent reads',
    description:
      'Shows why a run waits, what its agent says as it says it, its tool calls, and how it ended; the exit status says that, too. Ctrl-C ends svc alone: the run goes on. In a pipe it prints one event per line, as JSON.',
    example: 'svc run watch run_3nB7cW1yHsD5jK9q',
    positionals: [
      {
        name: 'run',
        target: 'params.runId',
        description: 'A run: an id such as run_3nB7cW1yHsD5jK9q, or `current` within a run.',
        refers: 'run',
      },
    ],
  }),
  local({
    name: 'workflow runs watch',
    summary: 'Follow a run of a workflow to its end, step by step',
    description:
      'Shows each step as it begins and ends, what is asked of people, and what the program logs; the exit status says how it ended. Ctrl-C ends svc alone.',
    example: 'svc workflow runs watch flr_9mZ2pL5yRd7Vf0Jg',
    positionals: [
      {
        name: 'workflow-run',
        target: 'params.workflowRunId',
        description: 'A workflow run: an id such as flr_9mZ2pL5yRd7Vf0Jg.',
        refers: 'workflow run',
      },
    ],
  }),
  local({
    name: 'status',
    summary: 'Show what waits for you, what failed lately, what works, and what waits to start and why',
    description:
      'Of each kind at most 20 are shown; `svc approval list`, `svc run list` and so on show all. With --watch a terminal shows it anew every three seconds, and a pipe gets a line of JSON each time that it has changed.',
    example: 'svc status',
    flags: [
      flag('hours', 'Show runs that failed within so many hours. Default: 24.'),
      flag('watch', 'Go on showing it, until Ctrl-C.', yes),
    ],
  }),
  local({
    name: 'doctor',
    summary:
      'Look for trouble on this machine: login, server, clock, device, harnesses, folders, disk, each with its fix',
    description: 'Ends with status 1 where something does not work. Nothing is changed.',
    example: 'svc doctor',
  }),
  local({
    name: 'api',
    summary: 'Call any route of the API',
    description:
      'PATH is below /api/v1 unless it begins with /api/. The default method is GET, or POST with fields or --input. Fields of a GET go into the query. In --field, `true`, `false`, `null` and numbers are typed, `@file` is the text of a file (`@-`: standard input), `a[b]=1` and `a[]=1` make objects and lists.',
    example: 'svc api GET /runs --field status=running --paginate',
    positionals: [
      {
        name: 'method-or-path',
        target: null,
        description: 'The method (GET, POST, PUT, PATCH or DELETE), or the path alone.',
      },
      { name: 'path', target: null, isOptional: true, description: 'The path, for example /agents/me.' },
    ],
    flags: [
      flag('field', 'Adds key=value to the body or the query.', { repeatable: true, aliases: ['F'] }),
      flag('raw-field', 'The same, but the value is always text.', { repeatable: true, aliases: ['f'] }),
      flag('method', 'The method, in place of the first word.', { aliases: ['X'] }),
      flag('input', 'File whose bytes are the body (`-`: standard input).'),
      flag('header', 'Adds a header, `Name: value`.', { repeatable: true, aliases: ['H'] }),
      flag('paginate', 'Read all pages of a list and print them as one.', yes),
      flag('include', 'Print the status and the headers of the answer on standard error.', { ...yes, aliases: ['i'] }),
    ],
  }),
  local({
    name: 'mcp config',
    summary: 'Print what to paste into the settings of a harness, so that it may use the API as MCP tools',
    description:
      'The harness then acts as you: it may do what you may, and each call counts as yours. It reads the login token from the variable SVC_TOKEN.',
    example: 'svc mcp config claude > .mcp.json',
    positionals: [
      {
        name: 'harness',
        target: null,
        isOptional: true,
        description: 'The harness: claude (default), codex, cursor or opencode.',
      },
    ],
    flags: [flag('with-token', 'Write your login token of this machine into it, in place of the variable.', yes)],
  }),
  local({
    name: 'completion',
    summary: 'Print the script that completes svc commands in a shell',
    example: 'svc completion bash > ~/.local/share/bash-completion/completions/svc',
    positionals: [{ name: 'shell', target: null, description: 'The shell: bash, zsh or fish.' }],
  }),
  local({
    name: 'complete-words',
    summary: 'Print the words that may follow the given ones; completion scripts call it',
    example: 'svc complete-words -- run get --ex',
    hidden: true,
    positionals: [
      {
        name: 'words',
        target: null,
        isOptional: true,
        variadic: true,
        description: 'The words of the line behind `svc`; the last one is being typed.',
      },
    ],
  }),
  local({
    name: 'help',
    summary: 'Show all commands, one command, or the exit codes',
    example: 'svc help exit-codes',
    positionals: [
      { name: 'topic', target: null, isOptional: true, variadic: true, description: 'A command, or exit-codes.' },
    ],
  }),
  local({ name: 'version', summary: 'Show the version of svc', example: 'svc version' }),
]

export const localCommands: readonly Command[] = [
  ...loginCommands,
  ...deviceCommands,
  ...agentCommands,
  ...ownCommands,
  ...copyCommands,
]
