import { expect, test } from 'vitest'
import { allCommands } from './commands.ts'
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
