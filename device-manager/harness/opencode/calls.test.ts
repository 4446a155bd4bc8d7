import { expect, it } from 'vitest'
import { callsOf } from './calls.ts'

const place = { servers: ['my srv', 'git', 'git_hub'], directory: '/w' }

it.each([
  ['bash', { command: 'ls', workdir: '/w' }, [{ name: 'Bash', input: { command: 'ls' } }]],
  ['bash', { command: 'ls', workdir: '/x' }, [{ name: 'Bash', input: { command: 'ls', workdir: '/x' } }]],
  ['read', { filePath: '/w/a' }, [{ name: 'Read', input: { filePath: '/w/a' } }]],
  ['skill', { name: 'tidy' }, [{ name: 'Skill', input: { name: 'tidy', skill: 'tidy' } }]],
  ['my_srv_say', { a: 1 }, [{ name: 'mcp__my_srv__say', input: { a: 1 } }]],
  ['constructor', {}, [{ name: 'constructor', input: {} }]],
])('%s %j is judged by the name that rules have', (tool, args, calls) => {
  expect(callsOf(tool, args, place)).toEqual(calls)
})

it('a tool that may be one of two servers is judged as both', () => {
  const names = callsOf('git_hub_push', {}, place)?.map(({ name }) => name)
  expect(names).toEqual(['mcp__git__hub_push', 'mcp__git_hub__push'])
})

it('a patch is judged as Write for the files that it adds and as Edit for all others, wherever it names them', () => {
  const patchText = [
    '*** Begin Patch',
    '*** Add File: new.txt',
    '+one',
    '*** Update File:  old.txt ',
    '*** Move to: moved.txt',
    '@@',
    '-a',
    '+b',
    '*** Delete File: gone.txt\r',
    '*** End Patch',
    '*** Add File: ../after.txt',
  ].join('\n')
  const calls = callsOf('apply_patch', { patchText }, place)
  const files = calls?.map(({ name, input }) => [
    name,
    (input as { changes: { file_path: string }[] }).changes.map(({ file_path }) => file_path),
  ])
  expect(files).toEqual([
    ['Write', ['new.txt', '../after.txt']],
    ['Edit', ['old.txt', 'moved.txt', 'gone.txt']],
  ])
})

it.each([[{}], [null], [{ patchText: 'rm -rf' }], [{ patchText: ['*** Add File: a'] }]])(
  'nobody can say what the patch %j is about',
  (args) => {
    expect(callsOf('apply_patch', args, place)).toBeNull()
  },
)
