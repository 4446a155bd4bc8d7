import { describe, expect, test } from 'vitest'
import type { ToolPermissions, ToolRule } from '../runs/spec.ts'
import { judgedPlace, plainReach } from '../../test/kit/judged-place.ts'
import { decide, refusal } from './decide.ts'
import { glob } from './patterns/glob.ts'
import { cpuMsOf } from '../../test/kit/cpu-time.ts'

const place = judgedPlace()
const bash = (command: string) => ({ name: 'Bash', input: { command } })
const lists = (change: Partial<ToolPermissions>): ToolPermissions => ({
  allow: [],
  ask: [],
  deny: [],
  defaultMode: 'ask',
  ...change,
})
const decided = (change: Partial<ToolPermissions>, call: { name: string; input: unknown }) =>
  decide(lists(change), place, { ...call, ...plainReach(call, place) })
const allows = (rule: ToolRule, call: { name: string; input: unknown }) =>
  decided({ allow: [rule], defaultMode: 'strict' }, call).decision === 'allow'
const denies = (rule: ToolRule, call: { name: string; input: unknown }) =>
  decided({ deny: [rule], defaultMode: 'full' }, call).decision === 'deny'

describe('order of the lists', () => {
  test('deny before ask before allow before the default mode', () => {
    const call = bash('git push')
    expect(decided({ deny: ['Bash'], ask: ['Bash'], allow: ['Bash'] }, call)).toEqual({
      decision: 'deny',
      rule: 'Bash',
    })
    expect(decided({ ask: ['Bash(git push:*)'], allow: ['Bash'] }, call)).toEqual({
      decision: 'ask',
      rule: 'Bash(git push:*)',
    })
    expect(decided({ allow: [{ tool: 'Bash', pattern: 'git *' }] }, call)).toEqual({
      decision: 'allow',
      rule: 'Bash(git *)',
    })
  })

  test.for([
    [['Bash'], ['Bash(git push)'], 'git push', 'allow'],
    [['Bash'], ['Bash(git push)'], 'git push --force', 'ask'],
    [['Bash'], ['Bash(git push)', 'Bash(npm test)'], 'npm test && git push', 'allow'],
    [['Bash'], ['Bash(git push)', 'Bash(npm test)'], 'npm test && rm -r x', 'ask'],
    [['Bash(git:*)'], ['Bash(git push)'], 'git push', 'allow'],
    [['Bash(git push)'], ['Bash(git:*)'], 'git push', 'ask'],
    [['Bash(git push)'], ['Bash(git push)'], 'git push', 'ask'],
    [['Bash', 'Bash(git push)'], ['Bash(git push)'], 'git push', 'ask'],
    [['Bash'], ['Bash'], 'git push', 'ask'],
    [['*'], ['Bash'], 'git push', 'allow'],
    [['*'], ['Bash(git push)'], 'git push', 'allow'],
  ] as const)('asked for by %j, allowed by %j: %s is %s', ([ask, allow, command, decision]) => {
    expect(decided({ ask: [...ask], allow: [...allow] }, bash(command)).decision).toBe(decision)
  })

  test('what is denied stays so, however narrowly it is allowed', () => {
    expect(decided({ deny: ['Bash'], ask: [], allow: ['Bash(git push)'] }, bash('git push')).decision).toBe('deny')
  })

  test.for([
    ['strict', 'deny'],
    ['ask', 'ask'],
    ['full', 'allow'],
  ] as const)('mode %s without a rule: %s', ([defaultMode, decision]) => {
    expect(decided({ defaultMode }, { name: 'Task', input: {} })).toEqual({ decision, rule: null })
  })
})

describe('a rule', () => {
  test.for(['Bash', 'Bash()', 'Bash(*)', 'Bash(**)', 'Bash(:*)', { tool: 'Bash', pattern: '' }] as const)(
    '%j is of the tool whatever its input',
    (rule) => {
      expect([allows(rule, bash('a | b > c')), denies(rule, bash(''))]).toEqual([true, true])
      expect(allows(rule, { name: 'Read', input: { file_path: 'a' } })).toBe(false)
    },
  )

  test.for(['Bash(lsx', 'Bash(ls', '(ls)', 'Bash ls)', 'Bash(rm:*', 'Bash[rm]', '"Bash(rm:*)"', 'Bash(rm:*))'])(
    '%s, which cannot be read, allows nothing, and forbids whatever it may be about',
    (rule) => {
      expect([allows(rule, bash('ls')), denies(rule, bash('ls'))]).toEqual([false, true])
      expect(decided({ ask: [rule], allow: ['Bash(ls)'], defaultMode: 'full' }, bash('ls')).decision).toBe('ask')
      const svc = bash('svc task get OPS-1')
      expect(decided({ ask: [rule], defaultMode: 'strict' }, svc)).toMatchObject({ decision: 'ask' })
    },
  )

  test('that cannot be read, but names a tool, leaves the other tools alone', () => {
    const read = { name: 'Read', input: { file_path: 'a' } }
    expect([denies('Bash(rm:*', read), denies('(rm:*)', read)]).toEqual([false, true])
  })

  test.for(['Bash( rm:*)', 'Bash(rm:* )', ' Bash(rm:*) ', 'Bash(rm :*)'])(
    '%j with blanks is the rule without',
    (rule) => {
      expect([denies(rule, bash('rm x')), denies(rule, bash('rmdir x'))]).toEqual([true, false])
    },
  )
})

describe('rules that allow a shell command', () => {
  test.for([
    ['test', String.raw`test -v 'a[$(touch p)]'`],
    ['test', String.raw`test -v a[\$\(touch\ p\)]`],
    ['[', String.raw`[ -v 'a[$(touch p)]' ]`],
    ['printf', String.raw`printf -v 'a[$(touch p)]' x`],
    ['printf', 'printf -v PATH . && printf x'],
    ['read', String.raw`read 'a[$(touch p)]'`],
    ['read', String.raw`builtin read 'a[\`touch p\`]'`],
    ['unset', String.raw`unset 'a[$(touch p)]'`],
    ['declare', String.raw`declare -i 'x=b'`],
    ['let', 'let x=y'],
    ['[[', '[[ x -eq 0 ]]'],
    ['export', 'export PATH=.; ls'],
    ['export', 'export BASH_ENV=./x; npm test'],
    ['export', 'command export LD_PRELOAD=./x.so && ls'],
    ['export', `'export' PATH=. | ls`],
    ['readonly', 'readonly PATH=.\nls'],
    ['PATH', 'PATH=.; ls'],
    ['alias', 'alias ls=rm; ls x'],
    ['hash', 'hash -p ./x ls; ls'],
    ['read', 'read PATH < /dev/null; ls'],
  ] as const)('that name %s allow none that steers what runs: %s', ([builtin, command]) => {
    const allow = [
      `Bash(${builtin}*)`,
      `Bash('${builtin}*)`,
      'Bash(builtin *)',
      'Bash(command *)',
      'Bash(ls*)',
      'Bash(npm test)',
    ]
    expect(decided({ allow, defaultMode: 'strict' }, bash(command)).decision).toBe('deny')
  })

  test.for([
    'npm test && export A=1',
    'test -f a[1] && ls',
    "printf '%s $5' x && ls",
    'set -e && npm test',
    "test -v 'a[1]'",
    '[[ -f x ]] && ls',
    'cd src && ls',
  ])('and what steers nothing is allowed as before: %s', (command) => {
    const names = ['npm test', 'export', 'test', 'printf', 'set', '[[', 'cd', 'ls']
    const allow = names.map((name) => `Bash(${name}*)`)
    expect(decided({ allow, defaultMode: 'strict' }, bash(command)).decision).toBe('allow')
  })

  test.for([
    ['Bash', 'anything; at all'],
    ['Bash(*)', 'anything'],
    ['bash(ls)', 'ls'],
    ['Bash(npm run:*)', 'npm run'],
    ['Bash(npm run:*)', 'npm run test -- --watch'],
    ['Bash(git *)', 'git status'],
    ['Bash(git *)', 'git add . && git commit -m "a; b | c"'],
    ['Bash(git *)', `git log --format='$(x) > y'`],
    ['Bash(npm test)', 'npm test 2>&1'],
    ['Bash(npm test)', 'npm test > /dev/null 2>&1'],
    ['Bash(echo *)', 'echo a \\; b'],
  ] as const)('%s allows: %s', ([rule, command]) => expect(allows(rule, bash(command))).toBe(true))

  test.for([
    ['Bash(npm run:*)', 'npm runner'],
    ['Bash(git *)', 'git status; rm -rf .'],
    ['Bash(git *)', 'git status && rm -rf .'],
    ['Bash(git *)', 'git status | sh'],
    ['Bash(git *)', 'git status & rm x'],
    ['Bash(git *)', 'git status\nrm -rf .'],
    ['Bash(git *)', 'git log $(rm x)'],
    ['Bash(git *)', 'git log `rm x`'],
    ['Bash(git *)', 'git log "$(rm x)"'],
    ['Bash(git *)', 'git log > ~/.bashrc'],
    ['Bash(git *)', 'git log >/dev/nullx'],
    ['Bash(git *)', 'git diff <(rm x)'],
    ['Bash(git *)', `git log 'open`],
    ['Bash(git *)', 'PAGER=x git log'],
    ['Bash(git *)', 'git log >\u{a0}/dev/null'],
    ['Bash(git *)', 'git log 2>&1\u{a0}x'],
    ['Bash(./build)', './build\u{a0}'],
    ['Bash(./build)', '\u{2003}./build'],
    ['Bash(./build)', './build\r'],
    ['Bash(./build)', './build\f'],
    ['Bash(git *)', "git log \\\0'\nrm x\n'"],
    ['Bash(git *)', ''],
    ['Bash(git *)', ';'],
    ['Edit', 'git'],
  ] as const)('%s does not allow: %s', ([rule, command]) => expect(allows(rule, bash(command))).toBe(false))

  test('two rules allow a chain together', () => {
    const allow = ['Bash(cd:*)', 'Bash(npm test)']
    expect(decided({ allow }, bash('cd app && npm test'))).toEqual({
      decision: 'allow',
      rule: 'Bash(cd:*), Bash(npm test)',
    })
    expect(decided({ allow }, bash('cd app && npm publish')).decision).toBe('ask')
  })

  test('an argv array is what a shell would be told', () => {
    expect(allows('shell(git status)', { name: 'shell', input: { command: ['bash', '-lc', 'git status'] } })).toBe(true)
    expect(allows('shell(git *)', { name: 'shell', input: { command: ['bash', '-lc', 'git status; rm x'] } })).toBe(
      false,
    )
    expect(allows('shell(git *)', { name: 'shell', input: { command: ['git', 'status'] } })).toBe(true)
    expect(allows('shell(git *)', { name: 'shell', input: { command: ['/usr/bin/zsh', '-c', 'git status'] } })).toBe(
      true,
    )
    for (const shell of ['./sh', 'tools/bash', '/srv/app/bin/sh', '/bin/../srv/app/sh'])
      expect(allows('shell(git *)', { name: 'shell', input: { command: [shell, '-c', 'git status'] } })).toBe(false)
  })
})

describe('rules that forbid a shell command', () => {
  test.for([
    'rm -rf /',
    'ls; rm x',
    'ls | xargs echo && rm x',
    'sudo -n rm x',
    'FOO=1 rm x',
    '/bin/rm x',
    'sh -c "rm x"',
    'echo $(rm x)',
    'echo `rm x`',
    '(cd a; rm x)',
    'if true; then rm x; fi',
    'ls\nrm x',
  ])('Bash(rm:*) denies: %s', (command) => expect(denies('Bash(rm:*)', bash(command))).toBe(true))
  test.for(['ls', 'rmdir x', 'echo farm rm'])('and leaves: %s', (command) =>
    expect(denies('Bash(rm:*)', bash(command))).toBe(false),
  )
})

describe('paths and addresses', () => {
  const edit = (file_path: string) => ({ name: 'Edit', input: { file_path } })
  test('are resolved before they are compared', () => {
    expect(allows('Edit(src/**)', edit('/srv/app/src/a/b.ts'))).toBe(true)
    expect(allows('Edit(src/**)', edit('src/a.ts'))).toBe(true)
    expect(allows('Edit(src/**)', edit('/srv/app/src/../../../etc/passwd'))).toBe(false)
    expect(allows('Edit(/srv/app/**)', edit('/srv/app/../other/x'))).toBe(false)
    expect(allows('Read(~/notes/*)', { name: 'Read', input: { file_path: '/home/ada/notes/x' } })).toBe(true)
    expect(denies('Read(**/.env)', { name: 'Read', input: { file_path: '/srv/app/sub/.env' } })).toBe(true)
    expect(denies('Read(.env)', { name: 'Read', input: { file_path: './sub/../.env' } })).toBe(true)
  })
  test.for([
    ['Read(secrets/**)', 'SECRETS/key'],
    ['Read(secrets/**)', '\u{17f}ecrets/key'],
    ['Read(secrets/**)', 's\u{200c}ecrets/key'],
    ['Read(stra\u{df}e/**)', 'STRASSE/key'],
    ['Read(caf\u{e9}/**)', 'CAFE\u{301}/key'],
  ] as const)('%s denies %s, which may be the same file', ([rule, file_path]) => {
    expect(denies(rule, { name: 'Read', input: { file_path } })).toBe(true)
  })
  const denied = (host: string, url: string) => denies(`WebFetch(domain:${host})`, { name: 'WebFetch', input: { url } })
  test.for<[string, string]>([
    ['127.0.0.1', 'http://[::ffff:127.0.0.1]/'],
    ['127.0.0.1', 'http://[::7f00:1]/'],
    ['[::ffff:7f00:1]', 'http://2130706433/'],
    ['::1', 'http://[::1]:80/'],
    ['.evil.com', 'http://a.evil.com/'],
    [' https://evil.com/x', 'http://evil.com/'],
  ])('a domain is meant however a person writes it: %s, %s', ([host, url]) => {
    expect(denied(host, url)).toBe(true)
    expect(denied(host, 'http://10.0.0.1/')).toBe(false)
  })

  test('a domain holds its subdomains and nothing that only looks alike', () => {
    const fetch = (url: string) => ({ name: 'WebFetch', input: { url } })
    expect(allows('WebFetch(domain:example.com)', fetch('https://docs.example.com/x'))).toBe(true)
    expect(allows('WebFetch(domain:example.com)', fetch('https://example.com.evil.org/'))).toBe(false)
    expect(allows('WebFetch(domain:example.com)', fetch('https://notexample.com/'))).toBe(false)
    expect(allows('WebFetch(domain:example.com)', fetch('no address'))).toBe(false)
  })
  test.for([
    'https://evil.com./x',
    'https://a.evil.com./',
    'https://EVIL.com../x',
    'https://ev%69l.com/',
    'https://evil\u3002com/',
    'https://good.com@evil.com:8443/',
    String.raw`https:\\evil.com\x`,
    'https:evil.com/x',
    'h\tttps://evil.com/',
    'git+ssh://EVIL.com%2e/x',
    String.raw`https://good.com\@evil.com/`,
    'view-source:https://evil.com/',
    'evil.com/x',
    'https://evil.com%00.good.com/',
  ])('a denied domain is denied in every spelling: %s', (url) => {
    for (const rule of ['WebFetch(domain:evil.com)', 'WebFetch(domain:EVIL.com.)'])
      expect(denies(rule, { name: 'WebFetch', input: { url } })).toBe(true)
  })
  test.for([
    'https://EVIL.com/x',
    'HTTPS://evil.com/x',
    'https://evil.com./x',
    'https://evil.com:443/x',
    'https://me@evil.com/x',
    'http://evil.com/x',
    'https://evil.com/%78',
    'https://evil.com/a/../x',
    'https://evil.com/x#y',
    String.raw`https:\\evil.com\x`,
    'https://evil.com /x',
  ])('and so is a denied address: %s', (url) => {
    for (const rule of ['WebFetch(https://evil.com/*)', 'WebFetch(https://EVIL.com/x)'])
      expect(denies(rule, { name: 'WebFetch', input: { url } })).toBe(true)
  })
  test('a rule about other letters than those of ASCII holds for both ways to write them', () => {
    for (const url of ['https://m\u00fcnchen.de/x', 'https://xn--mnchen-3ya.de/x', 'https://M\u00dcNCHEN.de./x'])
      for (const host of ['m\u00fcnchen.de', 'xn--mnchen-3ya.de']) {
        expect(denies(`WebFetch(domain:${host})`, { name: 'WebFetch', input: { url } })).toBe(true)
        expect(denies(`WebFetch(https://${host}/*)`, { name: 'WebFetch', input: { url } })).toBe(true)
      }
  })
  test('other addresses are left alone, and an allowed one is so in every reading', () => {
    const fetch = (url: string) => ({ name: 'WebFetch', input: { url } })
    for (const url of ['https://good.com/evil.com', 'https://notevil.com/', 'https://evil.com.good.com/x#@evil.com'])
      for (const rule of ['WebFetch(domain:evil.com)', 'WebFetch(https://evil.com/*)'])
        expect(denies(rule, fetch(url))).toBe(false)
    expect(allows('WebFetch(https://good.com/a/*)', fetch('https://good.com/a/b'))).toBe(true)
    expect(allows('WebFetch(https://good.com)', fetch('https://good.com'))).toBe(true)
    expect(allows('WebFetch(https://good.com/a/*)', fetch('https://good.com/a/../b'))).toBe(false)
    const below = 'WebFetch(https://*.good.com/*)'
    for (const url of ['https://docs.good.com/a', 'https://a.b.good.com/?q=1'])
      expect(allows(below, fetch(url))).toBe(true)
    for (const host of [
      'evil.com/x.good.com/',
      'evil.com?.good.com/',
      'evil.com#.good.com/',
      String.raw`evil.com\.good.com/`,
    ])
      expect([host, allows(below, fetch(`https://${host}`))]).toEqual([host, false])
    for (const rule of ['https://*', '*', '*good*', 'https://good.com*', '*://good.com/*', '*good.com/a*'])
      expect([rule, allows(`WebFetch(${rule})`, fetch('https://good.com/a'))]).toEqual([rule, true])
    expect(allows('WebFetch(domain:good.com)', fetch(String.raw`https://good.com\@evil.com/`))).toBe(false)
  })
  test('an address is one whatever its field is called, and each of several is judged', () => {
    const fetch = (input: object) => ({ name: 'mcp__web__copy', input })
    const rule = 'mcp__web__copy(https://example.com/*)'
    expect(allows(rule, fetch({ source: 'https://example.com/a' }))).toBe(true)
    expect(allows(rule, fetch({ source: 'https://example.com/a', url: 'https://evil.example/b' }))).toBe(false)
    expect(allows(rule, fetch({ source: 'https://example.com/a', destination: '/etc/x' }))).toBe(false)
    expect(denies(rule, fetch({ url: 'https://other.example/', from: ['https://example.com/a'] }))).toBe(true)
  })
  test('tool names may have a star; a pattern does not match an input without a main part', () => {
    expect(allows('mcp__github__*', { name: 'mcp__github__list', input: null })).toBe(true)
    expect(allows('mcp__github__*', { name: 'mcp__other', input: null })).toBe(false)
    expect(allows('Task(x*)', { name: 'Task', input: { weird: 1 } })).toBe(false)
  })
})

test('a pattern made to be slow is not', () => {
  const spent = cpuMsOf(() => expect(glob('*a*a*a*a*a*a*a*a*a*b', 'a'.repeat(20_000))).toBe(false))
  expect(spent).toBeLessThan(2_000)
})

test('the refusal says what to do', () => {
  expect(refusal({ decision: 'deny', rule: null }, bash('git push'))).toMatch(/Bash\(git push\).*no rule allows it/)
  expect(refusal({ decision: 'deny', rule: 'Bash(git push:*)' }, bash('git push'))).toContain('Bash(git push:*)')
})

test('a line is taken apart once for all rules that allow, and not at all when it is too long to be started', () => {
  const rules = Array.from({ length: 200 }, (_, at) => `Bash(r${at}:*)`)
  for (const command of ['1'.repeat(100_000), 'a;'.repeat(50_000), 'a'.repeat(1_000_000)]) {
    const spent = cpuMsOf(() => expect(decided({ allow: rules }, bash(command)).decision).toBe('ask'))
    expect(spent).toBeLessThan(1_500)
  }
  expect(decided({ allow: rules }, bash('r0 a; r199 b; r0 c')).decision).toBe('allow')
})
