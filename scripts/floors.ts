import type { Floor } from './check-floors.ts'

/** The rooms of the device manager, from the ground up: a file imports from its own room and from those before it. */
export const deviceManagerFloors: readonly Floor[] = [
  { room: 'device-manager/log', does: 'Writes the log lines of the daemon and of run hosts.' },
  { room: 'device-manager/setup', does: 'Knows the settings, the places of all files, and who this device is.' },
  { room: 'device-manager/process', does: 'Starts, finds and ends processes on all systems.' },
  { room: 'device-manager/spool', does: 'Keeps run events in SQLite until the control plane has them.' },
  { room: 'device-manager/wall', does: 'Puts a run where it cannot see what belongs to svc.' },
  { room: 'device-manager/change-set', does: 'Records the base of a run with git, and what differs from it.' },
  { room: 'device-manager/folders', does: 'Looks at a folder that people gave: is it there, what repository is it.' },
  {
    room: 'device-manager/harness/parts',
    does: 'Cuts output into events of a bounded size; what all adapters are made of.',
  },
  { room: 'device-manager/harness/claude', does: 'Speaks with Claude Code.' },
  { room: 'device-manager/harness/command', does: 'Runs any command.' },
  { room: 'device-manager/harness', does: 'Lists the adapters, and tells which harnesses are installed.' },
  { room: 'device-manager/run-host/wire', does: 'What the daemon and a run host say to each other, and where.' },
  {
    room: 'device-manager/run-host/permission/patterns',
    does: 'Matches a path or an address with a pattern of a rule.',
  },
  { room: 'device-manager/run-host/permission/shell', does: 'Reads shell lines: which commands would run.' },
  { room: 'device-manager/run-host/permission', does: 'Allows, denies or asks about a tool call.' },
  {
    room: 'device-manager/run-host/output',
    does: 'Turns output into events without secrets, and writes them to the spool.',
  },
  { room: 'device-manager/run-host/launch', does: 'Launches the harness, in a terminal or on pipes.' },
  { room: 'device-manager/run-host', does: 'The process that owns one run, from its assignment to its ending.' },
  { room: 'device-manager/isolation', does: 'Decides whether runs of this device get a wall, by trying one.' },
  { room: 'device-manager/run/hosts', does: 'Starts run hosts, finds them again, and talks with them.' },
  { room: 'device-manager/run', does: 'The life of each run as the daemon sees it: machine, journal, crashes.' },
  { room: 'device-manager/link', does: 'Holds the link to the control plane, and forwards the spool over it.' },
  { room: 'device-manager/daemon', does: 'Joins link, runs, spool and the socket for svc into one daemon.' },
  { room: 'device-manager/service', does: 'Installs and steers the background service of launchd or systemd.' },
  { room: 'device-manager/start', does: 'Starts the daemon: one per state folder, with room on the disk.' },
  { room: 'device-manager', does: 'The program svc-device: reads its arguments and hands over.' },
]

/** The rooms of `svc`. */
export const cliFloors: readonly Floor[] = [
  { room: 'cli/errors', does: 'Failures that svc finds itself, and what each exit status means.' },
  { room: 'cli/replies', does: 'Reads replies and streams, and tells the server from what answers in its place.' },
  { room: 'cli/machine', does: 'Variables, files, standard input and the browser of this machine.' },
  { room: 'cli/output', does: 'Prints, and makes text, tables and transcripts for people.' },
  { room: 'cli/arguments', does: 'Knows all commands, and reads the values of a command line.' },
  { room: 'cli/sign-in', does: 'Keeps logins, and says as whom svc calls.' },
  { room: 'cli/http', does: 'Calls the server: one route, all pages of a list, the events of a run.' },
  { room: 'cli/device', does: 'Talks to the daemon of this machine and to its service, and starts it.' },
  { room: 'cli/flows', does: 'Commands that are more than one call of a route.' },
  { room: 'cli/flows/device', does: 'Commands about this machine.' },
  { room: 'cli/flows/run', does: 'Commands that start, follow and show runs.' },
  { room: 'cli/flows/sign-in', does: 'Commands that sign in, change the workspace, and handle tokens.' },
  { room: 'cli/flows/task', does: 'Commands about tasks.' },
  { room: 'cli', does: 'The program svc: finds the command, gives it what it needs, and ends with its status.' },
]
