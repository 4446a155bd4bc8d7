import type { Floor } from './check-floors.ts'

/** The rooms of the device manager, from the ground up: a value import points to the same room or to one before it. */
export const deviceManagerFloors: readonly Floor[] = [
  {
    floor: 'ground: what daemon and run hosts both stand on',
    rooms: {
      log: 'writes the log lines of the daemon and of run hosts',
      watch: 'tells that one of a few files or folders may have changed',
      setup: 'knows the settings, the places of all files, and who this device is',
      process: 'starts, finds and ends processes on all systems',
      spool: 'keeps run events in SQLite until the control plane has them',
      wall: 'puts a run where it cannot see what belongs to svc',
      'change-set': 'records the base of a run with git, and the differences to it',
      clone: 'clones the repository of a run in a sandbox, and pushes what the run did, in a process of its own',
      folders: 'checks a folder that people named: whether it exists, and its repository',
      skills: 'keeps the files of skills of the workspace, and copies them for runs',
    },
  },
  {
    floor: 'harnesses: how each agent program is started and understood',
    rooms: {
      'harness/parts': 'cuts output into events of a bounded size; what all adapters are made of',
      'harness/claude': 'speaks with Claude Code',
      'harness/command': 'runs any command',
      harness: 'lists the adapters, and tells which harnesses are installed',
    },
  },
  {
    floor: 'run hosts: the process that owns one run',
    rooms: {
      'run-host/wire': 'the messages between the daemon and a run host, and their socket',
      'run-host/permission': 'answers the tool calls of a run by the engine of shared/permissions, and asks people',
      'run-host/output': 'turns output into events without secrets, and writes them to the spool',
      'run-host/mcp-proxy':
        'the proxies that add credentials to what a harness asks of MCP servers, so that it does not have them',
      'run-host/launch': 'launches the harness, in a terminal or on pipes',
      'run-host': 'the process that owns one run, from its assignment to its ending',
    },
  },
  {
    floor: 'daemon: the process that holds the link',
    rooms: {
      isolation: 'decides whether runs of this device get a wall, by trying one',
      'run/hosts': 'starts run hosts, finds them again, and talks with them',
      run: 'the life of each run as the daemon sees it: machine, journal, crashes',
      link: 'holds the link to the control plane, and forwards the spool over it',
      sandbox: 'the way from a sandbox to its broker',
      daemon: 'joins link, runs, spool and the socket for svc into one daemon',
      service: 'installs and steers the background service of launchd or systemd',
      start: 'starts the daemon: one per state folder, with room on the disk',
    },
  },
  { floor: 'program', rooms: { 'main.ts': 'reads the arguments of svc-device and hands over' } },
]

/** The rooms of what all parts share. */
export const sharedFloors: readonly Floor[] = [
  { floor: 'ground', rooms: { lib: 'knows nothing of svc: texts, time, redaction' } },
  {
    floor: 'words: what the parts tell each other',
    rooms: {
      runs: 'runs, their events, specs and reasons to end',
      device: 'the link protocol, and what daemon and svc say to each other',
      api: 'the contract of the API',
      releases: 'what a release is made of, its signature, and how a copy of svc was installed',
    },
  },
  {
    floor: 'permissions: the one engine of permission rules; pure, what it needs of a machine is passed in',
    rooms: {
      'permissions/patterns': 'matches a path or an address with a pattern of a rule',
      'permissions/shell': 'reads shell lines: which commands would run',
      permissions: 'decides about a tool call, and says why',
    },
  },
]

/** The rooms of `svc`. */
export const cliFloors: readonly Floor[] = [
  {
    floor: 'ground: knows no command',
    rooms: {
      errors: 'failures that svc finds itself, and what each exit status means',
      calls: 'a call of the API, its reply, its caller and a client, as types',
      replies: 'reads replies and streams, and notices answers that are not the server’s',
      machine: 'variables, files, standard input and the browser of this machine',
      output: 'prints, and makes text, tables and transcripts for people',
      arguments: 'knows all commands, and reads the values of a command line',
      context: 'everything a command needs for its work, as types',
    },
  },
  {
    floor: 'callers: as whom svc calls, and how',
    rooms: {
      'sign-in': 'keeps logins, and says as whom svc calls',
      http: 'calls the server: one route, all pages of a list, the events of a run',
      device: 'talks to the daemon of this machine and to its service, and starts it',
      copies: 'this copy of svc, the versions beside it, and releases to come',
    },
  },
  {
    floor: 'commands that are more than one call of a route',
    rooms: {
      flows: 'commands that are more than one call of a route',
      'flows/copies': 'commands that install, upgrade and remove svc',
      'flows/device': 'commands about this machine',
      'flows/run': 'commands that start, follow and show runs',
      'flows/sign-in': 'commands that sign in, change the workspace, and handle tokens',
      'flows/task': 'commands about tasks',
    },
  },
  {
    floor: 'program',
    rooms: {
      'flows.ts': 'the flow of each command, loaded when it is used',
      'start.ts': 'the quick start of a command that is one call',
      'main.ts': 'finds the command, gives it what it needs, and ends with its status',
    },
  },
]
