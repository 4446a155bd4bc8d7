import type { Floor } from './check-floors.ts'

/**
 * The rooms of the control plane from the ground up: a value import points to the same room or to one before it in this
 * list, never to a later one. A resource has three rooms in one folder: its rows and rules on one floor, steps that
 * others share on another, and its handlers above.
 */
export const controlPlaneFloors: readonly Floor[] = [
  {
    floor: 'kernel: knows no resource',
    rooms: {
      process: 'the log, metrics, lines of work and turns of one process',
      db: 'opening, transactions, migrations, statements, the outbox and the bus that reads it',
      vault: 'sealing and opening of secret values',
      catalog: 'models, prices, and which harness runs a model',
      blobs: 'bytes in a folder or a bucket, and the rows that say which there are',
      http: 'from the socket to a handler and back: callers, limits, idempotency, validation, replies',
    },
  },
  {
    floor: 'programs: what workflows are made of; knows no resource',
    rooms: {
      'workflows/program': 'the checks of a program that need no engine',
      'workflows/engine': 'runs programs from their journals, in threads',
      'workflows/catalog': 'programs that come with the server',
    },
  },
  {
    floor: 'rows and rules: what is stored of a resource, how it is looked up and shown',
    rooms: {
      'resources/members': 'people, their roles and login tokens',
      'resources/agents': 'agents, their settings, revisions, history and spend',
      'resources/repos': 'repositories and whose they are',
      'resources/workspaces': 'workspaces, companies, slugs',
      'resources/devices': 'devices, their claim, liveness and who may cause runs on them',
      'resources/folders': 'folders of devices',
      'resources/projects': 'projects and who sees them',
      'resources/secrets': 'sealed secrets, their grants, and what is taken out of texts',
      'resources/questions': 'questions of agents',
      'resources/platform-changes': 'writes of agents that wait for approval',
      'resources/approvals': 'approvals, and what a run or task waits for',
      'resources/quotas': 'accounts of harnesses that a provider limits',
      'resources/runs': 'runs, their leases, details, frames and events',
      'resources/files': 'files, their versions and relations, who sees them, what their URLs are signed with',
      'resources/tasks': 'tasks, checklists, dependencies, watchers, activity',
      'resources/conversations': 'conversations, their messages, who takes part, names of who speaks',
      'resources/learnings': 'learnings, what they are about, who sees them',
      'resources/workflows': 'stored programs, their runs and journals',
      'resources/automations': 'automations, their triggers, schedules and fires',
    },
  },
  {
    floor: 'lifecycle: from a wake to a device and to the end of a run',
    rooms: {
      placement: 'where a run may go, decided from facts',
      lifecycle: 'offer, claim, start, cancel, ending, and what else happens then',
      wakes: 'what a wake becomes, and the run that is made of it',
    },
  },
  {
    floor:
      'steps: parts of a change that handlers, sweeps, links and endings share; in the transaction of their caller',
    rooms: {
      'resources/runs/steps': 'a run as clients read it, with what it waits for; changes of a run that waits',
      'resources/questions/steps': 'answering and closing',
      'resources/approvals/steps': 'raising, closing, budgets, what an ending leaves open',
      'resources/platform-changes/steps': 'raising a change, doing it when it is approved, dropping it',
      'resources/agents/steps': 'storing an agent, agreeing to it, the doctor',
      'resources/workspaces/steps': 'making one, and cancelling what is queued in a halted one',
      'resources/tasks/steps': 'transitions, assignments, whom a change wakes, what a run does to its task',
      'resources/conversations/steps': 'posting, reading, whom a message wakes, the reply of a run',
      'resources/devices/steps': 'changing and removing a device',
      'resources/members/steps': 'ending what goes on in the name of a person',
      'resources/workflows/steps': 'beginning a run, and what the end of one means for its step',
      'resources/automations/steps': 'firing',
      'resources/files/steps': 'a file as clients read it, what it belongs to, its end',
      'resources/learnings/steps': 'a learning as clients read it, and what its review does',
    },
  },
  {
    floor: 'workflows: from what came to an end to what is done next',
    rooms: { 'workflows/advance': 'runs a program from its journal, and starts its next steps' },
  },
  {
    floor: 'links: the WebSocket of devices',
    rooms: { link: 'hello, heartbeats, ingest of frames, requests to devices' },
  },
  {
    floor: 'handlers: the order of steps of each route',
    rooms: {
      resources: 'the dependencies of handlers',
      'resources/runs/handlers': 'runs, their events and records',
      'resources/agents/handlers': 'agents, their settings, history, starts',
      'resources/devices/handlers': 'devices',
      'resources/folders/handlers': 'folders',
      'resources/members/handlers': 'members',
      'resources/workspaces/handlers': 'workspaces, export, removal',
      'resources/projects/handlers': 'projects and grants',
      'resources/repos/handlers': 'repositories',
      'resources/secrets/handlers': 'secrets',
      'resources/questions/handlers': 'questions',
      'resources/approvals/handlers': 'approvals and what approving does',
      'resources/tasks/handlers': 'tasks, their links and history',
      'resources/conversations/handlers': 'conversations, messages, turns, runtime settings',
      'resources/task-comments/handlers': 'comments of tasks',
      'resources/workflows/handlers': 'programs, their starts and runs',
      'resources/automations/handlers': 'automations and their hooks',
      'resources/files/handlers': 'files, their versions and relations',
      'resources/learnings/handlers': 'learnings',
    },
  },
  {
    floor: 'edges: requests from outside and from the clock, and the programs that assemble everything',
    rooms: {
      github: 'deliveries of GitHub and what they do, pull requests',
      'sign-in': 'pages, sessions, the device flow, OIDC, login tokens',
      sweeps: 'what happens by time',
      downloads: 'bytes of files for whoever has a signed URL',
      costly: 'work of unbounded cost, in threads',
      'run-effects.ts': 'the effects of the start and the end of a run on other resources',
      operator: 'commands on the database itself',
      'config.ts': 'the environment and flags as one value',
      'private-files.ts': 'files that only their owner may read',
      'node-version.ts': 'which Node the program needs',
      'kernel.ts': 'what all routes share, by the configuration',
      'routes.ts': 'every route with its handler',
      'sweeps.ts': 'every sweep',
      'server.ts': 'one replica, assembled, started and stopped in order',
      'serve.ts': 'a server as a program, until a signal',
      'command.ts': 'the commands of `svc-server`',
      'main.ts': 'the program',
    },
  },
]
