import { expect, test } from 'vitest'
import { allCommands } from './commands.ts'
import { meantLine } from './habit-lines.ts'
import { inOurWords } from './habits.ts'
import { bindValues, matchCommand } from './parse.ts'

const commands = await allCommands()
function meant(line: string): string {
  const words = line.split(' ')
  const match =
    matchCommand(commands, words) ??
    inOurWords(words)
      .map((each) => matchCommand(commands, each))
      .find((each) => each !== null)
  return match == null ? 'nothing' : [match.command.name, ...bindValues(match.command, match.rest)].join(' | ')
}

test.each([
  ['auth login', 'login'],
  ['auth status', 'whoami'],
  ['auth list', 'auth list'],
  ['run view run_1', 'run get | run_1'],
  ['run rerun run_1', 'run retry | run_1'],
  ['run list -s failed -L 3 -q .[0]', 'run list | --status=failed | --limit=3 | --jq=.[0]'],
  ['issue list --state open -a @me', 'task list | --status=open | --assignee=@me'],
  ['task create -t Hello -b World', 'task create | --title=Hello | --description=World'],
  ['task comment MAI-1 -b hi', 'task comment add | MAI-1 | --body=hi'],
  ['task comment list MAI-1', 'task comment list | MAI-1'],
  ['task close MAI-1', 'task transition | MAI-1 | --status=done'],
  ['issue close MAI-1 --reason completed -c yes', 'task transition | MAI-1 | --comment=yes | --status=done'],
  ['issue close MAI-1 --reason=not_planned', 'task transition | MAI-1 | --status=cancelled'],
  ['issue close MAI-1 -r duplicate', 'task transition | MAI-1 | --status=cancelled'],
  ['issue reopen MAI-1 -c again', 'task transition | MAI-1 | --reason=again | --status=open'],
  ['issue reopen MAI-1', 'task transition | MAI-1 | --status=open'],
  ['issue list -S log-in', 'task list | --q=log-in'],
  ['run view run_1 --log', 'run watch | run_1'],
  ['secret set TOKEN -o json', 'secret create | --name=TOKEN | --output=json'],
  ['issue status', 'status'],
  ['agent ls', 'agent list'],
  ['agent rm @builder', 'agent delete | @builder'],
  ['agent set @builder', 'nothing'],
  ['workflow run nightly', 'workflow start | nightly'],
  ['run frobnicate', 'nothing'],
  ['constructor view', 'nothing'],
  ['run constructor', 'nothing'],
])('%s is %s', (line, expected) => {
  expect(meant(line)).toBe(expected)
})

test('no word of svc itself is taken for another one', () => {
  for (const { name } of commands) expect(meant(name)).toBe(name)
})

test.each([
  ['login --with-token', 'login --token=-'],
  ['task list --state closed -L 2', 'task list --status=done --status=cancelled -L 2'],
  ['task list --state=all', 'task list'],
  ['task create -t x -F body.md', 'task create -t x --description-file=body.md'],
  ['task get MAI-1 --comments', 'task get MAI-1 --include=comments'],
  ['task update MAI-1 --add-assignee @builder', 'task assign MAI-1 --assignee @builder'],
  ['task update MAI-1 --remove-assignee=@builder', 'task assign MAI-1 --unassign'],
  ['run list -s failure', 'run list --status=failed'],
  ['run list --status completed', 'run list --status=succeeded --status=failed --status=cancelled'],
  ['run list --workflow nightly -L 3', 'workflow runs list --workflow nightly -L 3'],
  ['run watch run_1 --exit-status', 'run watch run_1'],
  ['run retry run_1 --failed', 'run retry run_1'],
  ['workflow start nightly -f a=b=c -F d=1', 'workflow start nightly --input=a=b=c --input=d=1'],
])('the flags of %s are those of %s', (line, expected) => {
  const { command, rest } = matchCommand(commands, line.split(' '))!
  expect(meantLine(command.name, rest)?.join(' ')).toBe(expected)
})

test.each([
  'run list --status failed',
  'run list --nothing',
  'task update MAI-1 --title x --add-assignee @builder',
  'task list -- --state closed',
  'task get constructor',
  'workflow start nightly --input a=b',
])('%s is no line of gh', (line) => {
  const { command, rest } = matchCommand(commands, line.split(' '))!
  expect(meantLine(command.name, rest)).toBeNull()
})
