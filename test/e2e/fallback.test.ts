import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFinished, test, expect } from 'vitest'
import { waitFor } from '../kit/programs.ts'
import { signInClaude } from '../kit/real-claude.ts'
import { codexConfig } from '../kit/real-codex.ts'
import { fetchHarness } from '../kit/real-harness.ts'
import { startStubLlm } from '../kit/stub-llm.ts'
import { TestSystem } from '../kit/system.ts'
import { makeRepo } from '../kit/system-scenario.ts'

test('a task that the real claude began, and whose provider fails, is finished by the real codex', async ({ skip }) => {
  const [claude, codex] = [fetchHarness('claude'), fetchHarness('codex')]
  for (const found of [claude, codex]) {
    if (!('missing' in found)) continue
    process.stderr.write(`\n*** NOT TESTED: a real harness is not available here. ${found.missing}\n\n`)
    return skip(found.missing)
  }
  if ('missing' in claude || 'missing' in codex) return
  const stub = await startStubLlm()
  onTestFinished(() => stub.stop())
  const system = await TestSystem.start({ devices: 0 })
  onTestFinished(() => system.stop())
  const { api } = system
  const device = system.makeDevice()
  mkdirSync(join(device.homeDir, '.codex'), { recursive: true })
  writeFileSync(join(device.homeDir, '.codex', 'config.toml'), codexConfig(`${stub.url}/s/codex`))
  signInClaude(device.homeDir, { binDir: claude.binDir, modelUrl: `${stub.url}/s/claude` })
  appendFileSync(
    join(device.homeDir, '.profile'),
    `export PATH='${codex.binDir}':"$PATH"\nexport OPENAI_API_KEY=dummy\n`,
  )
  await device.enrol(api, system.server.url)
  await device.start()
  const folder = join(system.root, 'site')
  makeRepo(folder)
  const { publicId } = device.identity
  const { shortId } = await api.addFolder({ displayName: 'site', rootPath: folder, deviceId: publicId })
  const agent = await api.createAgent({
    name: 'Builder',
    harness: 'claude',
    fallbackHarness: 'codex',
    model: 'claude-opus-4-5',
    defaultFolderId: shortId,
  })
  const shell = (command: string) => ({ kind: 'shell', command }) as const
  const failures = Array.from({ length: 20 }, () => ({ error: { status: 529, retryAfter: 0 } }))
  await stub.script({
    claude: { steps: [{ text: 'I begin.', tool: shell('echo claude >> who.txt') }, ...failures] },
    codex: { steps: [{ text: 'I go on.', tool: shell('echo codex >> who.txt') }, { text: 'Done.' }] },
  })
  const { key } = await api.insist<{ key: string }>('/tasks', { title: 'Build it', assignee: agent.id })
  const runs = async () => (await api.call<{ data: { id: string }[] }>('GET', `/runs?task=${key}`)).data
  const first = await waitFor(async () => (await runs())[0]?.id, 'the assignment wakes a run')
  expect((await api.waitForRun(first, 'failed')).harness.id).toBe('claude')
  const successor = await waitFor(async () => (await api.run(first)).successorRunId, 'a run follows')
  const done = await api.waitForRun(successor, 'succeeded')
  expect(done).toMatchObject({ harness: { id: 'codex' }, task: { id: key }, parentRunId: first })
  expect(readFileSync(join(folder, 'who.txt'), 'utf8')).toBe('claude\ncodex\n')
  const asked = (await stub.requests()).find(({ scenario }) => scenario === 'codex')
  expect(JSON.stringify(asked?.body)).toContain('Go on where you stopped')
})
