import { expect, it } from 'vitest'
import { filledServers } from './filled-servers.ts'

const web = (url: string, headers?: Record<string, string>) => ({
  web: { type: 'http' as const, url, ...(headers && { headers }) },
})

it('fills in variables everywhere, once', () => {
  const env = { TOKEN: 'a ${OTHER} $& b', OTHER: 'no', EMPTY: '', HOST: 'x.test' }
  const { servers, leftOut } = filledServers(
    {
      files: {
        type: 'stdio',
        command: '${HOST}/run',
        args: ['${TOKEN}', '${EMPTY:-full}', '${UNSET:-}', '${UNSET:-a:-b}', '$HOST ${1} ${'],
        env: { A: '${TOKEN}-${HOST}' },
      },
      ...web('https://${HOST}/mcp', { 'X-Key': '${TOKEN}' }),
    },
    env,
  )
  expect(leftOut).toEqual([])
  expect(servers).toEqual({
    files: {
      type: 'stdio',
      command: 'x.test/run',
      args: ['a ${OTHER} $& b', '', '', 'a:-b', '$HOST ${1} ${'],
      env: { A: 'a ${OTHER} $& b-x.test' },
    },
    web: { type: 'http', url: 'https://x.test/mcp', headers: { 'X-Key': 'a ${OTHER} $& b' } },
  })
})

it.each([
  [
    'a variable that is not set',
    { files: { type: 'stdio' as const, command: '${NO}', args: ['${NO} ${NEITHER}'] } },
    'NO, NEITHER',
  ],
  [
    'a variable that only objects have',
    { files: { type: 'stdio' as const, command: '${constructor}', args: [] } },
    'constructor',
  ],
  ['an empty command', { files: { type: 'stdio' as const, command: '${EMPTY}', args: [] } }, 'empty'],
  ['an address of a file', web('${FILE}'), 'no address'],
  ['an address that is none', web('http://${EMPTY}'), 'no address'],
  ['a line break in a header', web('http://x.test', { 'X-Key': '${LINES}' }), 'X-Key holds a line break'],
])('leaves a server out with %s, without a value', (_, given, why) => {
  const { servers, leftOut } = filledServers(given, { EMPTY: '', FILE: 'file:///secret', LINES: 'secret\n' })
  expect(servers).toEqual({})
  expect(leftOut).toEqual([{ name: Object.keys(given)[0], why: expect.stringContaining(why) }])
  expect(leftOut[0]?.why).not.toContain('secret')
})
