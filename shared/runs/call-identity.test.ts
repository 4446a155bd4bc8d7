import { expect, it } from 'vitest'
import { callIdentity } from './call-identity.ts'

it('is the name and the input, in one order of fields', () => {
  expect(callIdentity('Write', { path: '/x', content: 'y' })).toBe('["Write",{"content":"y","path":"/x"}]')
  expect(callIdentity('Write', undefined)).toBe('["Write",null]')
  expect(callIdentity('Write', ['a'])).toBe('["Write",["a"]]')
})

it('leaves out the description of a shell command, and nothing else', () => {
  const command = { command: 'ls', timeout: 5 }
  const same = ['List', 'See what is there'].map((description) => callIdentity('Bash', { description, ...command }))
  expect(new Set([...same, callIdentity('Bash', command)])).toEqual(new Set(['["Bash",{"command":"ls","timeout":5}]']))
  expect(callIdentity('Task', { description: 'a' })).not.toBe(callIdentity('Task', { description: 'b' }))
  expect(callIdentity('constructor', { description: 'a' })).toContain('"a"')
  expect(callIdentity('Bash', 'text')).toBe('["Bash","text"]')
})
