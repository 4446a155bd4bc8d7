import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Answer } from './api-server.ts'
import { onTerminal } from './on-terminal.ts'
import { makeServedHome, type ServedHome } from './served-home.ts'

// What a result looks like: to a person on a terminal, to a program in a pipe, and in the forms of JSON that flags ask for.

let home: ServedHome
beforeEach(() => {
  home = makeServedHome()
})
afterEach(() => home.close())

const run = (id: string, more: object = {}) => ({
  object: 'run',
  id,
  status: 'succeeded',
  agent: { id: 'agt_1', handle: '@builder', name: 'Builder' },
  task: { id: 'SVC-1', title: '登录页面应该记住人们来自哪里 and then go there again' },
  triggerSource: 'assignment',
  waitingOn: null,
  costUsd: '0.4217',
  createdAt: '2020-01-02T03:04:05.678Z',
  startedAt: '2020-01-02T03:04:06.000Z',
  completedAt: '2020-01-02T03:05:18.000Z',
  ...more,
})
const page = (data: readonly unknown[], nextCursor: string | null = null) => ({
  body: { object: 'list', data, hasMore: nextCursor !== null, nextCursor, cursor: nextCursor },
})

/** A list of five rows, `limit` at a time. */
async function fiveRuns(most = 2): Promise<Record<string, string>> {
  const rows = [1, 2, 3, 4, 5].map((at) => run(`run_${at}`))
  return home.inRun(({ query }) => {
    const from = Number(query.get('after') ?? 0)
    const to = from + Math.min(most, Number(query.get('limit') ?? most))
    return page(rows.slice(from, to), to < rows.length ? String(to) : null)
  })
}

describe('JSON', () => {
  test('--json, --output json and -o json print the answer as it came', async () => {
    const env = await fiveRuns()
    const plain = await home.svc(['run', 'list'], { env })
    expect(JSON.parse(plain.stdout)).toMatchObject({ data: [{ id: 'run_1' }, { id: 'run_2' }], nextCursor: '2' })
    for (const flags of [['--json'], ['--output', 'json'], ['-o', 'json'], ['-o=json']])
      expect((await home.svc(['run', 'list', ...flags], { env })).stdout, flags.join(' ')).toBe(plain.stdout)
  })

  test('--json with fields prints these alone, of a list its rows; a field that is not there is null', async () => {
    const env = await fiveRuns()
    const list = await home.svc(['run', 'list', '--json', 'id,gateReason'], { env })
    expect(JSON.parse(list.stdout)).toEqual([
      { id: 'run_1', gateReason: null },
      { id: 'run_2', gateReason: null },
    ])
    const one = await home.inRun(() => ({ body: run('run_1') }))
    for (const line of [
      ['run_1', '--json', 'status'],
      ['--json', 'status', 'run_1'],
      ['--json=status', 'run_1'],
    ])
      expect((await home.svc(['run', 'get', ...line], { env: one })).stdout).toBe('{"status":"succeeded"}\n')
    expect(JSON.parse((await home.svc(['run', 'get', '--json', 'current'], { env: one })).stdout)).toEqual(run('run_1'))
  })

  test('an unknown field is refused with the list of fields, and nothing is called', async () => {
    const env = await fiveRuns()
    const end = await home.svc(['run', 'list', '--json', 'id,state'], { env })
    expect([end.status, end.stdout]).toEqual([2, ''])
    const { error } = JSON.parse(end.stderr) as { error: { message: string; remediation: string } }
    expect(error.message).toBe('`svc run list` has no field `state`.')
    expect(error.remediation).toMatch(/^Here it is `status`\. Its fields are:\n/)
    expect(error.remediation.split('\n')).toEqual(expect.arrayContaining(['  id', '  status', '  costUsd']))
    expect(home.api.received).toEqual([])
  })

  test('--jq prints what the expression makes of it: texts as they are', async () => {
    const env = await fiveRuns()
    const jq = async (...flags: string[]) => (await home.svc(['run', 'list', ...flags], { env })).stdout
    expect(await jq('--jq', '.data[].id')).toBe('run_1\nrun_2\n')
    expect(await jq('--json', 'id,status', '--jq', 'map(select(.id == "run_2"))')).toBe(
      '[{"id":"run_2","status":"succeeded"}]\n',
    )
    expect(await jq('--all', '--jq', '[.data[].id] | length')).toBe('5\n')
    expect(await jq('--jq', '.data[] | select(.id == "none")')).toBe('')
  })

  test('an expression that cannot be read, or fails, ends with a sentence', async () => {
    const env = await fiveRuns()
    const unread = await home.svc(['run', 'list', '--jq', '.data[', '-o', 'table'], { env })
    expect([unread.status, unread.stderr]).toEqual([2, expect.stringContaining('--jq cannot read `.data[`')])
    const failed = await home.svc(['run', 'list', '--jq', '.data | keys | .[0] | keys'], { env })
    expect([failed.status, failed.stdout, failed.stderr]).toEqual([1, '', expect.stringContaining('cli.jq_failed')])
    expect(home.api.received).toHaveLength(1)
  })
})

describe('pages', () => {
  test('--all reads them all, as JSON one list', async () => {
    const env = await fiveRuns()
    const all = JSON.parse((await home.svc(['run', 'list', '--all'], { env })).stdout) as { data: { id: string }[] }
    expect(all).toMatchObject({ object: 'list', hasMore: false, nextCursor: null })
    expect(all.data.map(({ id }) => id)).toEqual(['run_1', 'run_2', 'run_3', 'run_4', 'run_5'])
    expect((await home.svc(['run', 'list', '--all', '-o', 'tsv'], { env })).stdout.match(/^run_\d\t/gm)).toHaveLength(5)
    const ids = await home.svc(['run', 'list', '--all', '--json', 'id'], { env })
    expect(JSON.parse(ids.stdout)).toHaveLength(5)
  })

  test('--limit beyond one page reads on, and asks for no row too many', async () => {
    const env = await fiveRuns(100)
    const rows = (await home.svc(['run', 'list', '--limit', '250', '--json', 'id'], { env })).stdout
    expect(JSON.parse(rows)).toHaveLength(5)
    expect(home.api.received.map(({ query }) => query.get('limit'))).toEqual(['100'])
    const many = Array.from({ length: 300 }, (_, at) => run(`run_${at}`))
    const more = await home.inRun(({ query }) => {
      const from = Number(query.get('after') ?? 0)
      const to = from + Number(query.get('limit'))
      return page(many.slice(from, to), String(to))
    })
    const end = await home.svc(['run', 'list', '--limit', '150'], { env: more })
    expect(JSON.parse(end.stdout)).toMatchObject({ hasMore: true, nextCursor: '150' })
    expect((JSON.parse(end.stdout) as { data: unknown[] }).data).toHaveLength(150)
    expect(home.api.received.map(({ query }) => query.get('limit'))).toEqual(['100', '50'])
  })

  test('--after is the name of the next page on lists that page by ids, too', async () => {
    const env = await home.inRun(() => page([]))
    await home.svc(['task', 'list', '--after', 'tsk_1'], { env })
    expect(home.api.received[0]!.query.get('startingAfter')).toBe('tsk_1')
  })

  test('a list that fails on its second page says so', async () => {
    const env = await home.inRun(({ query }) =>
      query.has('after') ? { status: 403, body: { error: { message: 'No.' } } } : page([run('run_1')], '1'),
    )
    expect(await home.svc(['run', 'list', '--all'], { env })).toMatchObject({ status: 1 })
    const both = await home.svc(['run', 'list', '--all', '--limit', '3'], { env })
    expect([both.status, both.stdout]).toEqual([2, ''])
  })
})

describe('tables', () => {
  /** Signs in a person: within a run nothing is made for people. */
  async function signIn(answer: Answer): Promise<void> {
    const { url: server } = await home.serve(() => answer)
    mkdirSync(join(home.dir, 'config'), { recursive: true })
    writeFileSync(join(home.dir, 'config/login.json'), JSON.stringify({ server, token: 'svc_pat_x' }))
  }

  const waits = run('run_2', { waitingOn: { kind: 'question', id: 'qst_1', label: 'Which?', since: '' } })

  test('in a pipe the cells are whole, with tabs between, and times are as the API writes them', async () => {
    const env = await home.inRun(() =>
      page([run('run_1', { task: { id: 'SVC-1', title: 'a\tb\u001b[2J\nc' } }), waits]),
    )
    const { stdout } = await home.svc(['run', 'list', '-o', 'table'], { env })
    expect(stdout.split('\n').map((line) => line.split('\t').slice(0, 7))).toEqual([
      ['run_1', 'succeeded', '@builder', 'SVC-1 a b c', '2020-01-02T03:04:05.678Z', '72s', '0.4217'],
      [
        'run_2',
        'waits: question',
        '@builder',
        'SVC-1 登录页面应该记住人们来自哪里 and then go there again',
        '2020-01-02T03:04:05.678Z',
        '72s',
        '0.4217',
      ],
      [''],
    ])
    const forced = { ...env, CLICOLOR_FORCE: '1' }
    const colour = '\u001b[32msucceeded\u001b[0m'
    expect((await home.svc(['run', 'list', '-o', 'table'], { env: forced })).stdout).toContain(colour)
    expect((await home.svc(['run', 'list', '-o', 'tsv'], { env: forced })).stdout).toBe(stdout)
    expect((await home.svc(['run', 'list', '-o', 'table'], { env: { ...forced, NO_COLOR: '1' } })).stdout).toBe(stdout)
    expect((await home.svc(['run', 'list', '-o', 'table', '--color', 'always'], { env })).stdout).toContain(colour)
    expect((await home.svc(['run', 'list', '-o', 'table', '--color=never'], { env: forced })).stdout).toBe(stdout)
  })

  test.each([
    [undefined, true],
    ['NO_COLOR', false],
  ])('on a terminal they fit, with relative times; colours (%s): %s', async (variable, hasColours) => {
    await signIn(page([run('run_1'), waits], 'n1'))
    const env = { ...home.env, ...(variable !== undefined && { [variable]: '1' }) }
    const terminal = onTerminal({ dir: home.dir, env }, ['run', 'list'], 80)
    expect(await terminal.ended).toBe(0)
    const { text } = terminal.shown
    expect(text.includes('\u001b[')).toBe(hasColours)
    expect(stripVTControlCharacters(text).split('\r\n')).toEqual([
      'ID     STATUS           AGENT     TASK                CREATED      TOOK    COST',
      expect.stringMatching(/^run_1  succeeded        @builder  SVC-1 登录页面应…   \d years ago  1m 12s  \$0.42$/),
      expect.stringMatching(/^run_2  waits: question  @builder  SVC-1 登录页面应…   \d years ago  1m 12s  \$0.42$/),
      '(1 column left out: --json shows all)',
      '(more: --after n1, or --all)',
      '',
    ])
  })

  test.each([
    ['a pager', 60, 'sed s/^/paged:/', true],
    ['no pager where all fits', 3, 'sed s/^/paged:/', false],
    ['no pager, since none is wanted', 60, '', false],
    ['no pager, since it is not there', 60, '/no/such/pager', false],
  ])('what is longer than the screen is shown in %s', async (_, rows, pager, isPaged) => {
    await signIn(page(Array.from({ length: rows }, (__, at) => run(`run_${at}`))))
    const terminal = onTerminal({ dir: home.dir, env: { ...home.env, SVC_PAGER: pager } }, ['run', 'list'], 80)
    expect(await terminal.ended).toBe(0)
    const { text } = terminal.shown
    expect(text.match(/^(?:paged:)?run_\d+ /gm)).toHaveLength(rows)
    expect(text.includes('paged:run_0')).toBe(isPaged)
  })
})
