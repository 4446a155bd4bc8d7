import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { makePage } from '../api/facts/kit/wiki.ts'
import { useRealServer } from './real-server.ts'

// The commands of the wiki, by the real `svc` against a real server.

const real = useRealServer()
const call = (line: readonly string[], { token = real.server.owner.token, input = '' } = {}) =>
  real.svc(line, { env: { SVC_TOKEN: token }, input })

test('all commands of docs/wiki.md work in their order', async () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/wiki.md'), 'utf8')
  const lines = page.split('\n').filter((line) => line.startsWith('svc '))
  expect(lines.length).toBeGreaterThan(20)
  const deploy = '# How we deploy\n\nSee [the ports](ports) first.'
  writeFileSync(join(real.folder, 'deploy.md'), deploy)
  writeFileSync(join(real.folder, 'short.md'), 'Ask.')
  writeFileSync(join(real.folder, 'ports.csv'), 'port,for\n4400,"the ""API"""\n')
  mkdirSync(join(real.folder, 'handbook'))
  writeFileSync(join(real.folder, 'handbook', 'start.md'), '# Start here\n')
  const values: Record<string, string> = {}
  const printed: Record<string, string> = {}
  for (const line of lines) {
    const words = [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, word]) => quoted ?? values[word!] ?? word!)
    const end = await call(words.slice(1))
    expect([line, end.status, end.stderr]).toEqual([line, 0, ''])
    printed[line] = end.stdout
    if (line === 'svc wiki get how-we-deploy') values['BASE'] = JSON.parse(end.stdout).currentRevisionId
  }
  expect(readFileSync(join(real.folder, 'copy.md'), 'utf8')).toBe(deploy)
  expect(printed['svc wiki get how-we-deploy --revision BASE --out -']).toBe(`${deploy}\n`)
  // The newest that was not current: the short one.
  expect(JSON.parse(printed['svc wiki restore how-we-deploy']!)).toMatchObject({ body: 'Ask.', isPublished: true })
  expect(JSON.parse(printed['svc wiki list --archived']!).data).toMatchObject([{ slug: 'deploying' }])
})

test('what there is nothing of is said', async () => {
  const { id, currentRevisionId } = await makePage({ server: real.server }, { body: 'Words.' })
  const restored = await call(['wiki', 'restore', id])
  expect(restored.status).toBe(1)
  expect(restored.stderr).toContain('no other revision')
  await real.server.database.root('wiki_pages').where({ id }).update({ current_revision_id: null, token_count: null })
  const listed = await call(['wiki', 'list', '--output', 'table'])
  expect(listed.stdout).toMatch(new RegExp(`\tno\t\t${id}\t$`, 'm'))
  const got = await call(['wiki', 'get', id, '--out', '-'])
  expect(got.status).toBe(1)
  expect(got.stderr).toContain('never published')
  expect((await call(['wiki', 'get', id, '--revision', currentRevisionId, '--out', '-'])).stdout).toBe('Words.\n')
  expect(JSON.parse((await call(['wiki', 'restore', id])).stdout)).toMatchObject({ body: 'Words.' })
})

test('an agent writes, is told what is wrong, and does not archive', async () => {
  const { token } = await real.server.agentCaller()
  const cited = ['wiki', 'create', '--title', 'Findings', '--body-file', '-']
  const refused = await call(cited, { token, input: 'It is so [1].' })
  expect(refused.status).toBe(1)
  expect(refused.stderr).toContain('numbered citation [1]')
  const made = await call(cited, { token, input: 'It is [so](https://example.com).' })
  expect(JSON.parse(made.stdout)).toMatchObject({ slug: 'findings', kind: 'markdown' })
  expect((await call(['wiki', 'archive', 'findings'], { token })).status).toBe(1)
})
