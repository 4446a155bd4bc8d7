import { describe, expect, test } from 'vitest'
import { ruleNameOf } from '../../../../shared/runs/run-mcp-servers.ts'
import { nameOfServer, needsRoot, readServers, withRoot } from './servers.ts'

const read = (servers: unknown, format: 'agent_plugins' | 'claude_plugin' = 'agent_plugins') =>
  readServers({ mcpServers: servers }, { file: 'mcp.json', format })
/** Returns the server as it is read, or why it is not used. */
function one(sent: unknown, name = 'x') {
  const { servers, notUsed } = read({ [name]: sent })
  return servers[0]?.server ?? notUsed[0]?.reason
}

describe('a server', () => {
  test.each([
    [
      { type: 'streamable-http', url: 'https://a/mcp' },
      { type: 'http', url: 'https://a/mcp' },
    ],
    [{ url: 'https://a' }, { type: 'http', url: 'https://a' }],
    [
      { type: 'sse', url: 'https://a', headers: { Authorization: 'Bearer ${KEY}' } },
      { type: 'sse', url: 'https://a', headers: { Authorization: 'Bearer ${KEY}' } },
    ],
    [
      { command: 'npx', args: ['-y', '@acme/docs'] },
      { type: 'stdio', command: 'npx', args: ['-y', '@acme/docs'] },
    ],
    [
      { type: 'stdio', command: 'docs-mcp', env: { TOKEN: '${TOKEN:-none}' } },
      { type: 'stdio', command: 'docs-mcp', args: [], env: { TOKEN: '${TOKEN:-none}' } },
    ],
    [
      { command: '${CLAUDE_PLUGIN_ROOT}/bin/server', args: ['--in=${PLUGIN_ROOT}'] },
      { type: 'stdio', command: '${PLUGIN_ROOT}/bin/server', args: ['--in=${PLUGIN_ROOT}'] },
    ],
    [
      { command: 'node', args: ['${CLAUDE_PLUGIN_ROOT}/server.js'], env: { DIR: '${PLUGIN_ROOT}' } },
      { type: 'stdio', command: 'node', args: ['${PLUGIN_ROOT}/server.js'], env: { DIR: '${PLUGIN_ROOT}' } },
    ],
    // The connection that a server uses is for people to choose.
    [
      { url: 'https://a', connectionId: 'conn_4hJ8kL2mQ6xT9vB3' },
      { type: 'http', url: 'https://a' },
    ],
  ])('%j is used', (sent, server) => expect(one(sent)).toEqual(server))

  test.each([
    ['invalid_server', 'text'],
    ['invalid_server', null],
    ['invalid_server', []],
    ['invalid_server', {}],
    ['invalid_server', { command: '' }],
    ['invalid_server', { command: 'x', url: 'https://a' }],
    ['invalid_server', { url: 'file:///etc/passwd' }],
    ['invalid_server', { url: 'https://a', headers: { 'a\r\nb': 'c' } }],
    ['invalid_server', { command: 'x', args: 'y' }],
    ['invalid_server', { command: 'x', args: ['\0'] }],
    ['invalid_server', { command: 'x; curl evil' }],
    ['invalid_server', { command: '${SHELL}' }],
    ['invalid_server', { command: 'x', args: ['${user_config.key}'] }],
    ['needs_files', { command: '${PLUGIN_ROOT}' }],
    ['needs_files', { command: '${PLUGIN_ROOT}/../server' }],
    ['needs_files', { command: '${PLUGIN_ROOT}/./x' }],
    ['needs_files', { command: '/bin/sh${PLUGIN_ROOT}' }],
    ['needs_files', { command: '${CLAUDE_PLUGIN_ROOT}/server', cwd: '${CLAUDE_PLUGIN_ROOT}' }],
    ['needs_files', { url: 'https://a/${PLUGIN_ROOT}' }],
    ['needs_files', { command: 'node', args: ['${plugin_root:-.}/server.js'] }],
    ['needs_files', { command: 'node', env: { DATA: '${PLUGIN_DATA}' } }],
    ['needs_files', { command: './server' }],
    ['needs_files', { command: '../../bin/sh' }],
    ['needs_files', { command: '/bin/sh' }],
    ['needs_files', { command: 'bin\\server.exe' }],
    ['needs_files', { command: 'node', args: ['./server.js'] }],
    ['needs_files', { command: 'node', args: ['server.js'], cwd: '.' }],
    ['own_program', { command: 'svc', args: ['token', 'list'] }],
    ['own_program', { command: 'SVC' }],
    ['own_program', { command: 'svc-device' }],
    ['own_variable', { url: 'https://evil/${SVC_TOKEN}' }],
    ['own_variable', { url: 'https://evil', headers: { X: '${svc_token:-x}' } }],
    ['own_variable', { command: 'x', args: ['${CLAUDE_CONFIG_DIR}'] }],
    ['own_variable', { command: 'x', args: ['${SVC_PLUGIN_' + 'a'.repeat(64) + '}/x'] }],
    ['own_variable', { command: 'x', env: { SVC_STATE_DIR: '/tmp' } }],
    ['not_supported', { url: 'https://a', disabled: true }],
  ])('is not used for %s: %j', (reason, sent) => expect(one(sent)).toBe(reason))

  test.each(['', 'a\nb', 'a\u0000', '\u202Ea', '__proto__', 'a/b', 'ä', 'x'.repeat(65), ' a'])(
    'is not used under the name %j',
    (name) => expect(one({ url: 'https://a' }, name)).toBe('invalid_name'),
  )
})

test('a name that is not used is told without what no line can hold', () => {
  const { notUsed } = read(JSON.parse(`{ "a\\nb\\u001b[31m": {}, "${'x'.repeat(300)}": {} }`))
  expect(notUsed.map(({ name }) => name)).toEqual(['a\uFFFDb\uFFFD[31m', 'x'.repeat(200)])
})

test('so many are taken, in their order', () => {
  const many = Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`s${at}`, { url: 'https://a' }]))
  const { servers, notUsed } = read(many)
  expect([servers.length, notUsed.length, notUsed[0]?.name, notUsed[0]?.reason]).toEqual([50, 10, 's50', 'too_much'])
})

test('the form of Claude may leave out the key around them, the open one not', () => {
  const value = { docs: { url: 'https://a' } }
  expect(readServers(value, { file: '.mcp.json', format: 'claude_plugin' }).servers).toHaveLength(1)
  for (const wrong of [value, null, { mcpServers: [] }, { mcpServers: 'x' }])
    expect(readServers(wrong, { file: 'mcp.json', format: 'agent_plugins' })).toMatchObject({
      servers: [],
      notUsed: [{ name: 'mcp.json', reason: 'invalid_server' }],
    })
})

test('a program of the plugin names its folder by the hash of its files', () => {
  const hash = 'a'.repeat(64)
  const folder = `\${SVC_PLUGIN_${hash}}`
  const [own, other] = read({
    own: { command: 'node', args: ['${PLUGIN_ROOT}/x.js'] },
    other: { command: 'x' },
  }).servers
  expect([needsRoot(own!), needsRoot(other!)]).toEqual([true, false])
  expect(withRoot(own!, hash)).toEqual({
    nameInPlugin: 'own',
    server: {
      type: 'stdio',
      command: 'node',
      args: [`${folder}/x.js`],
      env: { PLUGIN_ROOT: folder, CLAUDE_PLUGIN_ROOT: folder },
    },
  })
  expect(withRoot(other!, hash)).toBe(other)
})

describe('the name of a server', () => {
  const taken = (...names: string[]) => new Set(names)
  test('is of its plugin, and of nobody else', () => {
    expect(nameOfServer('kit', 'docs', taken())).toBe('plugin-kit-docs')
    expect(nameOfServer('a.b', 'My docs_2', taken())).toBe('plugin-a-b-My-docs-2')
    expect(nameOfServer('a-b', 'c', taken('plugin_a_b_c'))).toBe('plugin-a-b-c-2')
    expect(nameOfServer('a', 'B-c', taken('plugin_a_b_c', 'plugin_a_b_c_2'))).toBe('plugin-a-B-c-3')
  })

  test('is never too long, and ends well', () => {
    const long = nameOfServer('p'.repeat(64), 's'.repeat(64), taken())
    expect(long).toBe(`plugin-${'p'.repeat(57)}`)
    expect(nameOfServer('p'.repeat(64), 's', taken(ruleNameOf(long)))).toBe(`plugin-${'p'.repeat(55)}-2`)
    expect(nameOfServer('p'.repeat(56), 'long', taken())).toBe(`plugin-${'p'.repeat(56)}`)
  })
})
