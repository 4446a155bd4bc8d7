import type { Command } from './command.ts'
import { flag, local, yes } from './local-command.ts'

// Commands of svc that show several things together, follow something, or are about svc itself.

const settingPositional = {
  name: 'setting',
  target: null,
  description: '`color`, `output` or `pager`; of `svc config get` also `server` and `workspace`.',
} as const

export const ownCommands: readonly Command[] = [
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
    name: 'search',
    summary: 'Find tasks, pages of the wiki and files by their words',
    description:
      'Tasks by title, key and description, pages by their text, files by name and description; of each kind at most 20. --in names one kind.',
    example: 'svc search "log-in page"',
    positionals: [{ name: 'text', target: null, variadic: true, description: 'What to look for.' }],
    flags: [
      flag('in', 'Look among these alone.', { choices: ['tasks', 'wiki', 'files'] }),
      flag('limit', 'So many of each kind. Default: 20.', { kind: 'number' }),
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
      flag('silent', 'Print nothing of the answer; the exit status tells how it went.', yes),
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
    name: 'config list',
    summary: 'Show the settings of svc on this machine, and where each comes from',
    example: 'svc config list',
  }),
  local({
    name: 'config get',
    summary: 'Print a setting of svc on this machine',
    example: 'svc config get pager',
    positionals: [settingPositional],
  }),
  local({
    name: 'config set',
    summary: 'Choose how svc prints on this machine; flags and variables of the environment count more',
    example: 'svc config set color never',
    positionals: [
      settingPositional,
      { name: 'value', target: null, description: 'Its value; an empty one, or `default`, takes the setting back.' },
    ],
  }),
  local({
    name: 'completion',
    summary: 'Print the script that completes svc commands in a shell',
    example: 'svc completion bash > ~/.local/share/bash-completion/completions/svc',
    positionals: [{ name: 'shell', target: null, isOptional: true, description: 'The shell: bash, zsh or fish.' }],
    flags: [flag('shell', 'The shell, in place of the word.', { aliases: ['s'] })],
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
