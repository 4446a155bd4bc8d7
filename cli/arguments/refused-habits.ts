// Lines of gh for which svc has nothing: what to type instead. Loaded for a line that cannot be read.

interface Refusal {
  message: string
  remediation: string
}

const pullRequests: Refusal = {
  message: 'A pull request is made and merged at its git host.',
  remediation: 'Read that of a task: svc task pull-request KEY',
}

const lines: Readonly<Record<string, Refusal>> = {
  'task delete': {
    message: 'A task is not deleted: what was done for it stays.',
    remediation: 'Give it up: svc task transition KEY --status cancelled\nHide it from lists: svc task archive KEY',
  },
  'run delete': {
    message: 'A run is not deleted: what it did stays.',
    remediation: 'End one that is live: svc run cancel RUN',
  },
  'run download': {
    message: 'A run leaves no artifacts.',
    remediation: 'What it changed: svc run diff RUN\nWhat it recorded: svc run result RUN\nFiles: svc file list',
  },
  'repo clone': {
    message: 'svc clones nothing.',
    remediation: 'Addresses of the repositories: svc repo list   (then: git clone ADDRESS)',
  },
  'repo view': { message: 'There is no page of one repository.', remediation: 'Type `svc repo list`.' },
  'workflow enable': {
    message: 'A workflow is never off: it may be started until it is retired.',
    remediation: 'Type `svc workflow start NAME`.',
  },
  'workflow disable': {
    message: 'A workflow is not turned off, but retired: it starts no more.',
    remediation: 'Type `svc workflow delete NAME`.',
  },
  'auth switch': {
    message: 'Another workspace or server has a login of its own.',
    remediation: 'Type `svc company use SLUG`, or `svc login --server ADDRESS`.',
  },
  'auth refresh': { message: 'A login token is not refreshed.', remediation: 'Type `svc login`.' },
  browse: { message: 'svc shows no pages in a browser.', remediation: 'Type `svc status`.' },
  label: {
    message: 'There are no labels.',
    remediation: 'Tasks are sorted by project and priority: svc project list, svc task list --priority high',
  },
  alias: {
    message: 'svc keeps no aliases: the shell does.',
    remediation: "Type, for example: alias co='svc task get'",
  },
  'pr diff': { ...pullRequests, remediation: `${pullRequests.remediation}\nWhat a run changed: svc run diff RUN` },
  pr: pullRequests,
}

export function refusedHabitOf([first = '', second = '']: readonly string[]): Refusal | null {
  for (const key of [`${first} ${second}`, first]) if (Object.hasOwn(lines, key)) return lines[key]!
  return null
}

const inBrowser = 'svc shows no pages in a browser: it prints what it knows, with --json all of it.'
const inWorkspace =
  'Everything is of a workspace, not of a repository: svc company use SLUG, or --workspace UUID for one command.'
const byAssign = 'The assignee changes by itself: svc task assign KEY @AGENT'
const byInput = 'The value comes from standard input, where no other program sees it: svc secret set NAME < value.txt'

/** What to do in place of a flag of gh that the command does not have, or ''. */
export function adviceOnFlag(command: string, flag: string): string {
  if (flag === '--web' || flag === '-w') return inBrowser
  if (flag === '-R' || flag === '--repo') return inWorkspace
  if (/^--(add|remove)-assignee$/.test(flag)) return byAssign
  return command === 'secret create' && (flag === '--body' || flag === '-b') ? byInput : ''
}

/** Fields as gh names them, with those of svc that say the same; a record has one of them or none. */
const fields: Readonly<Record<string, readonly string[]>> = {
  number: ['key', 'id'],
  state: ['status'],
  databaseId: ['id'],
  body: ['description', 'content'],
  author: ['createdBy', 'author'],
  assignees: ['assignee'],
  conclusion: ['status'],
  displayTitle: ['promptStart', 'title'],
  closedAt: ['completedAt'],
}

/** What a field of gh is called here, as a sentence with a space behind it, or ''. `known`: the fields of the record. */
export function adviceOnField(field: string, known: readonly string[]): string {
  const ours = Object.hasOwn(fields, field) ? fields[field]!.find((each) => known.includes(each)) : undefined
  return ours === undefined ? '' : `Here it is \`${ours}\`. `
}
