import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { useRealServer } from './real-server.ts'

// The commands of connections, by the real `svc` against a real server.

const real = useRealServer()
const call = (line: readonly string[], input?: string) =>
  real.svc(['connection', ...line], input === undefined ? {} : { input })

test('all commands of docs/connections.md work in their order', async () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/connections.md'), 'utf8')
  const lines = page.split('\n').filter((line) => line.startsWith('svc connection '))
  expect(lines.length).toBe(7)
  let made = ''
  for (const line of lines) {
    const words = line.split(' ').map((word) => (word.startsWith('conn_') ? made : word))
    const end = await call(words.slice(2))
    expect([line, end.status, end.stderr]).toEqual([line, 0, ''])
    if (line.includes('deepwiki')) made = JSON.parse(end.stdout).connection.id
  }
  const [piped] = page.split('\n').filter((line) => line.startsWith('echo '))
  const [, json, command] = /^echo '(.*)' \| svc connection (.*)$/.exec(piped!)!
  const end = await call(command!.split(' '), json!.replace('...', 'abc'))
  expect(JSON.parse(end.stdout)).toMatchObject({ status: 'connected', connection: { integration: { id: 'tavily' } } })
  expect((await real.server.ok('/connections')).totalCount).toBe(2)
})

test('the fields of a key come from a file, too, and what is no JSON is not repeated', async () => {
  const file = join(real.folder, 'key.json')
  writeFileSync(file, '{"apiKey":"tvly-file"}')
  const line = ['create', '--integration-id', 'tavily', '--owner-type', 'user', '--account-label', 'file']
  expect(JSON.parse((await call([...line, '--api-key-fields', `@${file}`])).stdout)).toMatchObject({
    status: 'connected',
  })
  const wrong = await call([...line, '--api-key-fields', 'tvly-secret'])
  expect([wrong.status, wrong.stderr.includes('--api-key-fields'), wrong.stderr.includes('tvly-secret')]).toEqual([
    2,
    true,
    false,
  ])
  const refused = await call(['get', 'conn_0000000000000000'])
  expect([refused.status, refused.stderr]).toEqual([1, expect.stringContaining('connection_not_found')])
})
