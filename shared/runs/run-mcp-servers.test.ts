import { describe, expect, it } from 'vitest'
import { mcpServersFor, type McpTaker } from './run-mcp-servers.ts'
import { mcpLimits } from './mcp-servers.ts'

const lists = { allow: [], ask: [], deny: [] }
const taker: McpTaker = { harness: 'claude', permissions: { ...lists, defaultMode: 'ask' } }
const free = { ...lists, defaultMode: 'full' } as const
const files = { command: 'files' }
const read = (stored: Record<string, unknown>, changes: Partial<McpTaker> = {}) => {
  const { given, leftOut } = mcpServersFor(stored, { ...taker, ...changes })
  return { given, leftOut: leftOut.map(({ name, reason }) => `${name}: ${reason}`) }
}
const remote = { web: { type: 'http', url: 'https://x.test' }, old: { type: 'sse', url: 'https://x.test' } }

describe('the servers of a workspace', () => {
  it('are read in the forms that other programs know; what is unknown is ignored', () => {
    const headers = { Authorization: 'Bearer ${TOKEN}' }
    const { given, leftOut } = read({
      files: { command: 'files', args: ['--here'], env: { A: '${B:-c}' }, comment: 1 },
      web: { url: 'https://x.test/mcp', headers, type: null },
      stream: { type: 'streamable-http', url: '${BASE}/mcp' },
      old: { type: 'sse', url: 'http://x.test' },
    })
    expect(leftOut).toEqual([])
    expect(given).toEqual({
      files: { type: 'stdio', command: 'files', args: ['--here'], env: { A: '${B:-c}' } },
      web: { type: 'http', url: 'https://x.test/mcp', headers },
      stream: { type: 'http', url: '${BASE}/mcp' },
      old: { type: 'sse', url: 'http://x.test' },
    })
    expect(mcpServersFor(null, taker)).toEqual({ given: {}, leftOut: [] })
  })

  it.each([
    ['a word', 'files'],
    ['nothing', null],
    ['a list', [files]],
    ['no command', { args: [] }],
    ['a list as command', { command: ['files'] }],
    ['both kinds', { command: 'files', url: 'https://x.test' }],
    ['an unknown type', { type: 'ws', url: 'wss://x.test' }],
    ['an address that is none', { url: 'file:///etc/passwd' }],
    ['a zero byte', { command: 'a\0b' }],
    ['a variable without a name', { command: 'x', env: { 'A=B': 'c' } }],
    ['a header with a line break in its name', { url: 'https://x.test', headers: { 'A\r\nB': 'c' } }],
    ['too many arguments', { command: 'x', args: Array.from({ length: mcpLimits.args + 1 }, () => '') }],
    ['a long value', { command: 'x'.repeat(mcpLimits.valueChars + 1) }],
  ])('are left out with %s', (_, sent) => {
    expect(read({ bad: sent, good: files })).toMatchObject({ given: { good: {} }, leftOut: ['bad: unreadable'] })
  })

  it.each(['a__b', 'a_', '_a', '-a', 'a b', 'a.b', '', 'ä', 'x'.repeat(65), '__proto__', 'a\n'])(
    'are left out under the name %j, by which rules could be misled',
    (name) => {
      expect(read(JSON.parse(`{${JSON.stringify(name)}:{"command":"x"}}`) as Record<string, unknown>)).toEqual({
        given: {},
        leftOut: [`${name}: name`],
      })
    },
  )

  it('are told apart by rules', () => {
    const { given, leftOut } = read({ 'my-files': files, My_Files: files, 'my-file': files })
    expect(Object.keys(given)).toEqual(['my-files', 'my-file'])
    expect(leftOut).toEqual(['My_Files: ambiguous'])
  })

  it('that are switched off stay off', () => {
    const stored = { a: { ...files, disabled: true }, b: { ...files, enabled: false }, c: { ...files, enabled: true } }
    expect(read(stored)).toMatchObject({ given: { c: {} }, leftOut: ['a: disabled', 'b: disabled'] })
  })

  it('are no more, and no larger, than a run can carry', () => {
    const many = Object.fromEntries(Array.from({ length: mcpLimits.servers + 1 }, (_, at) => [`s${at}`, files]))
    expect(read(many).leftOut).toEqual([`s${mcpLimits.servers}: too_many`])
    const large = { command: 'x', args: Array.from({ length: 3 }, () => 'y'.repeat(mcpLimits.valueChars - 100)) }
    expect(read({ a: large, b: large, c: files })).toMatchObject({
      given: { a: {}, c: {} },
      leftOut: ['b: too_large'],
    })
  })

  it('go to a harness as far as it takes them', () => {
    const all = { files, ...remote }
    expect(read(all).leftOut).toEqual([])
    expect(read(all, { harness: 'codex' }).leftOut).toEqual(['old: transport'])
    expect(read(all, { harness: 'cursor' }).leftOut).toEqual([])
    expect(read({ files }, { harness: 'cursor', permissions: free }).leftOut).toEqual(['files: unasked'])
    expect(read({ files }, { harness: 'claude', permissions: free }).leftOut).toEqual([])
    expect(read({ files }, { harness: 'command' }).leftOut).toEqual(['files: harness'])
    expect(read(all, { harness: 'command', protocol: 'acp', permissions: free }).leftOut).toEqual([])
  })
})
