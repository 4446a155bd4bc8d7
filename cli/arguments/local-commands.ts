import type { Command } from './command.ts'
import { copyCommands } from './copy-commands.ts'
import { flag, local, yes } from './local-command.ts'
import { ownCommands } from './own-commands.ts'

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
    name: 'auth token',
    summary: 'Print the login token that svc calls with, for other programs',
    description: 'Whoever has the token can do what you can. Within a run it is refused.',
    example: 'svc auth token',
  }),
  local({
    name: 'whoami',
    summary: 'Show the caller: the person or the agent, the workspace, the server',
    example: 'svc whoami',
  }),
]

const serviceFlags = [
  flag('system', 'A service of the machine, for root to change; needs --user.', yes),
  flag('user', 'The account whose device it keeps running.'),
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
      'Installs a systemd user unit on Linux and a launchd agent on macOS. Type it again after Node or svc moved, or your PATH changed. A running device manager is replaced; its runs go on. With --system and --user root installs a unit of the machine for the device of that account, which starts with the machine.',
    example: 'svc device install-service',
    flags: serviceFlags,
  }),
  local({
    name: 'device uninstall-service',
    summary: 'Stop the device manager and remove its service; refused while runs are active',
    example: 'svc device uninstall-service',
    flags: serviceFlags,
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

export const localCommands: readonly Command[] = [
  ...loginCommands,
  ...deviceCommands,
  ...agentCommands,
  ...ownCommands,
  ...copyCommands,
]
