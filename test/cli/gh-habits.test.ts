import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { onTerminal } from './on-terminal.ts'
import { useRealServer } from './real-server.ts'

// Lines that a user of gh types without reading any help.

const real = useRealServer()
const names: Record<string, string> = {}

beforeAll(async () => {
  const make = async (...line: string[]) => {
    const end = await real.svc(line)
    expect(end.status, end.stderr).toBe(0)
    return JSON.parse(end.stdout) as { id: string; key: string; runPublicId: string }
  }
  await make('agent', 'create', '--name', 'Builder')
  const task = await make('task', 'create', '--title', 'Find the umbrella')
  const run = await make('agent', 'run', '@builder', '--prompt', 'Look around')
  writeFileSync(join(real.folder, 'notes.md'), 'an umbrella')
  await make('file', 'upload', 'notes.md')
  Object.assign(names, { NOTES: join(real.folder, 'notes.md'), TASK: task.key, RUN: run.runPublicId })
}, 60_000)

/** What a line says, or a part of it. */
const said: readonly (readonly [line: string, told: string | RegExp])[] = [
  ['issue list', 'Find the umbrella'],
  ['issue list --state open --limit 5', 'Find the umbrella'],
  ['issue list -a @builder', ''],
  ['issue view TASK', 'Find the umbrella'],
  ['issue create -t "Second thing" -b "with words"', 'Second thing'],
  ['issue edit TASK --title Umbrella', 'Umbrella'],
  ['issue comment TASK -b hello', 'hello'],
  ['issue close TASK -c "no more"', 'done'],
  ['issue reopen TASK --comment "still there"', 'open'],
  ['issue close TASK --reason "not planned"', 'cancelled'],
  ['issue list --state closed --limit 5', 'Umbrella'],
  ['issue reopen TASK -c "after all"', 'open'],
  ['issue list --state all', 'Umbrella'],
  ['issue create -t "From a file" -F NOTES', 'From a file'],
  ['issue view TASK --comments', 'hello'],
  ['issue status', /approval|run|Nothing/],
  ['task view TASK', 'Umbrella'],
  ['task ls', 'Umbrella'],
  ['task list --json key,title', '"title"'],
  ['task list --json key --jq .[].key', 'MAI-1'],
  ['task list --search umbrella', 'Umbrella'],
  ['task list -S umbrella', 'Umbrella'],
  ['run list', 'Look around'],
  ['run list -L 1', 'Look around'],
  ['run ls --status queued', 'Look around'],
  ['run list --status failure -L 3', ''],
  ['run list --workflow implement_and_review', ''],
  ['run view RUN', 'Look around'],
  ['run view RUN --json id', '"id"'],
  ['run cancel RUN', 'cancelled'],
  ['run rerun RUN --failed', 'runs it again'],
  ['agent view @builder', 'Builder'],
  ['repo list', ''],
  ['repo ls', ''],
  ['secret set TOKEN --provider acme', 'TOKEN'],
  ['secret list', 'TOKEN'],
  ['secret delete TOKEN', ''],
  ['workflow list', ''],
  ['workflow view implement_and_review', '-- source'],
  ['auth status', 'Owner'],
  ['auth token', /^svc_pat_/],
  ['api /api/v1/tasks', 'Umbrella'],
  ['api user --jq .email', 'owner'],
  ['api -X POST tasks -f title=ByApi --silent', /^$/],
  ['api tasks -q .data[0].key', 'MAI-'],
  ['completion -s bash', '_svc'],
  ['completion --shell zsh', 'compdef'],
  ['search umbrella', 'Umbrella'],
  ['search notes', 'notes.md'],
  ['search issues umbrella', 'Umbrella'],
  ['config list', 'pager'],
  ['config set pager less', ''],
  ['config get pager', 'less'],
  ['status', 'Look around'],
  ['version', ''],
  ['--version', ''],
  ['help task', 'svc task create'],
  ['help issue', 'svc task create'],
  ['help issue create', 'svc task create'],
  ['project list', ''],
  ['issue edit TASK --add-assignee @builder', '@builder'],
  ['issue edit TASK --remove-assignee @builder', 'Umbrella'],
]

const wordsOf = (line: string): string[] =>
  (line.match(/"[^"]*"|\S+/g) ?? []).map((word) => names[word] ?? word.replaceAll('"', ''))

test.each(said)('svc %s', async (line, told) => {
  const isJson = /--json|-q |^api|^completion|token/.test(line)
  const end = await real.svc([...wordsOf(line), ...(isJson ? [] : ['-o', 'tsv'])], { input: 'x' })
  expect(end.status, end.stderr).toBe(0)
  if (typeof told === 'string') expect(end.stdout).toContain(told)
  else expect(end.stdout).toMatch(told)
})

/** What svc has nothing for: each says what to type. */
test.each([
  ['task delete TASK', 'svc task transition KEY --status cancelled'],
  ['issue delete TASK', 'svc task archive KEY'],
  ['issue view TASK --web', 'svc shows no pages in a browser'],
  ['issue view TASK -w', 'svc shows no pages in a browser'],
  ['secret set TOKEN2 --body x', 'svc secret set NAME < value.txt'],
  ['pr list', 'svc task pull-request KEY'],
  ['pr diff TASK', 'svc run diff RUN'],
  ['alias set co "task get"', "alias co='svc task get'"],
  ['issue list -R other', 'svc company use SLUG'],
  ['issue edit TASK --title x --add-assignee @builder', 'svc task assign KEY @AGENT'],
  ['label list', 'svc project list'],
  ['browse', 'svc status'],
  ['run download RUN', 'svc run diff RUN'],
  ['workflow disable nightly', 'svc workflow delete NAME'],
  ['repo clone shop', 'git clone ADDRESS'],
  ['config set server https://a.example', 'svc login --server ADDRESS'],
  ['config set color pink', 'auto, always, never'],
  ['config get colour', 'color, output, pager'],
  ['completion', 'bash, zsh, fish'],
])('svc %s is refused with what to type', async (line, told) => {
  const end = await real.svc([...wordsOf(line), '-o', 'table'])
  expect([end.status, end.stdout]).toEqual([2, ''])
  expect(end.stderr).toContain(told)
})

test('a setting holds on a terminal, and not against a flag, a variable, in a pipe or in a run', async () => {
  const home = real.home
  expect((await real.svc(['config', 'set', 'output', 'json'])).status).toBe(0)
  expect((await real.svc(['config', 'set', 'color', 'always'])).status).toBe(0)
  const ended = async (line: readonly string[], more: Record<string, string> = {}) => {
    const own = { SVC_TOKEN: real.server.owner.token, SVC_API_URL: real.server.url }
    const terminal = onTerminal({ ...home, env: { ...home.env, ...own, ...more } }, line)
    expect(await terminal.ended, terminal.shown.text).toBe(0)
    return terminal.shown.text
  }
  expect(await ended(['task', 'list'])).toContain('"object": "list"')
  expect(await ended(['task', 'list', '-o', 'table'])).toContain('KEY')
  const piped = (await real.svc(['task', 'list', '-o', 'table'])).stdout
  expect(piped).toContain('\u001b[')
  expect((await real.svc(['task', 'list', '-o', 'table'], { env: { NO_COLOR: '1' } })).stdout).not.toContain('\u001b[')
  expect((await real.svc(['task', 'list', '-o', 'table', '--color', 'never'])).stdout).not.toContain('\u001b[')
  expect((await real.svc(['config', 'get', 'color'], { env: { NO_COLOR: '1' } })).stdout).toBe('1\n')
  const inRun = { SVC_RUN_ID: 'run_3nB7cW1yHsD5jK9q' }
  for (const line of [
    ['config', 'set', 'color', 'never'],
    ['auth', 'token'],
  ])
    expect(await real.svc(line, { env: inRun })).toMatchObject({ status: 4, stdout: '' })
  expect((await real.svc(['task', 'list', '-o', 'table'], { env: inRun })).stdout).not.toContain('\u001b[')

  writeFileSync(join(home.dir, 'config/settings.json'), '{"color":"always","output":7')
  expect((await real.svc(['task', 'list', '-o', 'table'])).stdout).not.toContain('\u001b[')
  expect((await real.svc(['config', 'set', 'color', 'default'])).status).toBe(0)
  expect(JSON.parse(readFileSync(join(home.dir, 'config/settings.json'), 'utf8'))).toEqual({})
})
