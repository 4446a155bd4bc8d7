import { expect, test } from 'vitest'
import { inputsOf, mainInput, type CallInputs } from './call-inputs.ts'

/** Returns what was found, without what is empty. */
function found(name: string, input: unknown) {
  const { doubt, ...lists } = inputsOf({ name, input })
  const full = Object.entries(lists).filter(([, list]) => list.length > 0)
  return { ...(Object.fromEntries(full) as Partial<CallInputs>), ...(doubt !== null && { doubt }) }
}
const plain = (...texts: string[]) => texts.map((text) => ({ text, rest: '', isDefault: false }))

test.each<[string, unknown, Partial<CallInputs>]>([
  ['a command', { command: 'ls' }, { commands: ['ls'] }],
  ['the words of a command', { cmd: ['git', 'log', 1, null] }, { commands: ['git log 1 null'] }],
  ['what a shell is told to run', { command: ['/bin/bash', '-lc', 'ls x'] }, { commands: ['ls x'] }],
  ['a shell by its name', { command: ['sh', '-c', 'ls'] }, { commands: ['ls'] }],
  ['a shell with more words', { command: ['sh', '-c', 'ls', 'x'] }, { commands: ['sh -c ls x'] }],
  ['a shell with another flag', { command: ['sh', '-x', 'ls'] }, { commands: ['sh -x ls'] }],
  ['what is no shell', { command: ['fish', '-c', 'ls'] }, { commands: ['fish -c ls'] }],
  ['no words', { command: [] }, { commands: [''] }],
  ['paths by any name', { filePath: 'a', 'output-path': 'b', NOTEBOOK_PATH: 'c' }, { paths: plain('a', 'b', 'c') }],
  ['paths in lists and below', { files: ['a', { x: 'b' }], deep: { dir: 'c' } }, { paths: plain('a', 'b', 'c') }],
  ['a number that names a file', { file: 7, url: 8 }, { paths: plain('7') }],
  ['addresses', { url: 'x', uri: 'https://a/b', href: 'notes' }, { urls: ['x', 'https://a/b'], paths: plain('notes') }],
  ['a path in an address', { uri: 'file:///a%20b', url: ' file:///c' }, { paths: plain('/a b', '/a%20b', '/c') }],
  [
    'an address that a tool may take for a path of its folder',
    { uri: 'File:src/a' },
    { paths: plain('/src/a', 'src/a') },
  ],
  ['an address of no file', { path: 'file://host/a' }, { doubt: 'its address of a file cannot be read' }],
  ['an address of no path', { path: 'file:///a%2Fb' }, { doubt: 'its address of a file cannot be read' }],
  [
    'what may be a path',
    { src: 'a/b', dst: 'word', root: '~', from: 'C:\\x', to: 'https://a', target: 'prod' },
    { paths: plain('a/b', 'word', '~', 'C:\\x'), urls: ['https://a'], others: ['prod'] },
  ],
  [
    'texts',
    { query: 'a', pattern: 'b', subagent_type: 'c', mime_type: 'd' },
    { texts: ['a', 'b', 'c'], others: ['d'] },
  ],
  [
    'what looks like a path',
    { note: '/etc/x', other: '../y', up: '..', home: '~', word: 'z', name: '.env' },
    { paths: plain('/etc/x', '../y', '..', '~', '.env'), others: ['z'] },
  ],
  [
    'what is no path',
    { note: '/a\nb', long: `/${'x'.repeat(8_192)}`, dots: '...' },
    { others: ['/a\nb', `/${'x'.repeat(8_192)}`, '...'] },
  ],
  [
    'an address by any name',
    { link: 'https://a/b', text: 'see https://a' },
    { urls: ['https://a/b'], others: ['see https://a'] },
  ],
  [
    'a program and its arguments',
    { command: 'git', args: ['push', '-f'] },
    { commands: ['git push -f'], others: ['push', '-f'] },
  ],
  ['a program by its words', { program: ['git'], arguments: 'push' }, { commands: ['git push'], others: ['push'] }],
  ['one in a field', { command: { name: 'git', args: ['push'] } }, { commands: ['git push'], others: ['push'] }],
  ['arguments of nothing', { args: ['push'] }, { others: ['push'] }],
  ['several commands', { commands: ['ls', 'git push'] }, { commands: ['ls', 'git push'], others: ['ls git push'] }],
  ['lines by the name of one', { command: ['npm test', 'rm x'] }, { commands: ['npm test rm x', 'npm test', 'rm x'] }],
  ['commands as words', { commands: [['git', 'push'], 'ls'] }, { commands: ['git push', 'ls'] }],
  [
    'a command line',
    { commandLine: 'ls', shell_command_line: 'pwd', deep: { argv: ['a', 'b'] } },
    { commands: ['ls', 'pwd', 'a b'] },
  ],
  ['names with odd characters', { 'path ': 'a', 'file-1': 'b' }, { paths: plain('a', 'b') }],
  ['a path as long as it may be', { note: `/${'x'.repeat(8_191)}` }, { paths: plain(`/${'x'.repeat(8_191)}`) }],
  ['nothing', null, {}],
])('finds %s', (_what, input, expected) => {
  expect(found('mcp__any__tool', input)).toEqual(expected)
})

test('a known tool writes texts that only look like paths, and is told paths by name alone', () => {
  expect(found('Write', { file_path: 'a', content: '/etc/passwd', note: 'file:///x' })).toEqual({ paths: plain('a') })
  expect(found('Write', { uri: 'file:///x' })).toEqual({ paths: plain('/x') })
})

test('a tool that searches works in its folder when it is told no other', () => {
  const here = [{ text: '.', rest: '', isDefault: true }]
  for (const name of ['Grep', 'LS']) expect(found(name, {})).toEqual({ paths: here })
  expect(found('Grep', { path: 'src' })).toEqual({ paths: plain('src') })
  expect(found('Read', {})).toEqual({})
  expect(found('Glob', {})).toEqual({ paths: here })
})

test('a pattern of file names is the folder that it begins with, and the rest', () => {
  const globbed = (pattern: string, path?: string) =>
    inputsOf({ name: 'Glob', input: { pattern, ...(path !== undefined && { path }) } }).paths
  expect(globbed('*.ts')).toEqual([{ text: '.', rest: '*.ts', isDefault: true }])
  expect(globbed('src/a*/b')).toEqual([{ text: 'src/', rest: 'a*/b', isDefault: false }])
  expect(globbed('src/a')).toEqual([{ text: 'src/a', rest: '', isDefault: false }])
  expect(globbed('a/*', 'lib')).toEqual([{ text: 'lib/a/', rest: '*', isDefault: false }])
  expect(globbed('*', 'lib')).toEqual([{ text: 'lib', rest: '*', isDefault: false }])
  // A tool may take either of the two.
  expect(globbed('/etc/*', 'lib')).toEqual([
    { text: '/etc/', rest: '*', isDefault: false },
    { text: 'lib', rest: '*', isDefault: false },
  ])
  for (const leaving of [
    '*/../x',
    'a*/..',
    '*\\..\\x',
    '{..,a}/x',
    '{a,../x}',
    '@(..)/x',
    '.[.]/x',
    '[.][.]/x',
    '.{.,a}/x',
    '{.,a}{.,b}/x',
    '.{a,{,.}}/x',
    '.@(.|a)/x',
    '+(.)/x',
    '.[.a]/x',
    '.[!a]/x',
    String.raw`\.\./x`,
    String.raw`{\.\.,a}/x`,
  ])
    expect(found('Glob', { pattern: leaving }).doubt).toBe('its pattern leaves its folder')
  for (const staying of [
    '*/..x',
    '*/x..',
    '{a,b..c}',
    '**/.*',
    '[a..b]x',
    '*.{ts,tsx}',
    '{.github,.vscode}/**',
    '@(a|b).[jt]s',
  ])
    expect(found('Glob', { pattern: staying }).doubt).toBeUndefined()
})

test('an input of too many parts or paths is in doubt, and one below the limit is not', () => {
  const many = 'its input has too many parts'
  const count = (values: number) => found('any', { x: Array.from({ length: values }, () => 1) }).doubt
  // The list counts for what it holds, and each of that again.
  expect(count(9_999)).toBeUndefined()
  expect(count(10_000)).toBe(many)
  const paths = (length: number) => inputsOf({ name: 'any', input: { files: Array.from({ length }, () => 'a') } })
  expect(paths(500)).toMatchObject({ doubt: null })
  expect(paths(501).doubt).toBe('its input names too many paths')
  expect(paths(501).paths).toHaveLength(500)
})

test('a person knows a call by its command, path or address', () => {
  expect(mainInput({ command: ['sh', '-c', 'ls'], path: 'x' })).toBe('ls')
  expect(mainInput({ file_path: 'x', note: 'y' })).toBe('x')
  expect(mainInput({ command: 'npm', args: ['publish'] })).toBe('npm publish')
  for (const nothing of [null, 'text', { note: 'y' }, { file_path: 7 }]) expect(mainInput(nothing)).toBeNull()
})
