import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { waitFor } from '../kit/programs.ts'
import { makeRepo } from '../kit/system-scenario.ts'
import { acpDriver, claudeDriver, codexDriver, opencodeDriver } from './harness/drivers.ts'
import { answeredCase, endsCase } from './harness/joined-cases.ts'
import { cursorCases, installCursor } from './harness/cursor-cases.ts'
import { serverCases } from './harness/server-cases.ts'
import { approvedCase, askedCase, strictCase } from './harness/short-cases.ts'
import { stagesFor } from './harness/stage.ts'
import { workflowCase } from './harness/workflow-case.ts'

/**
 * What the short form shows of the real harnesses, on one device that has them. Recordings stand for the rest of the cases; the long
 * form has them in harness-acp, -claude, -codex and -opencode.
 */
// Claude is the first, since its person's profile is written anew.
const { stageOn, systemOf } = stagesFor([claudeDriver, codexDriver, opencodeDriver, acpDriver], installCursor)

/** Two at once: each waits for models, tools and timers, and for programs that use one processor. */
const beside = (name: string, cases: () => void) =>
  describe(name, { concurrent: true }, () => {
    describe('one after another', { concurrent: false }, () => {
      cases()
    })
  })

// Each start of these two takes 5 s of processor time and more, so there is one.
beside('slow programs', () => {
  describe('opencode', () => {
    const stageOf = stageOn(opencodeDriver)
    askedCase(stageOf, opencodeDriver)

    test('is found with its version', async () => {
      const found = await waitFor(async () => {
        const { providerReadiness } = (await stageOf().api.devices())[0]!
        return 'harnesses' in providerReadiness ? providerReadiness.harnesses['opencode'] : null
      }, 'the device says which harnesses it has')
      // By the key of codex's person.
      expect(found).toMatchObject({ installed: true, version: '1.18.33', signedIn: true, message: null })
    })
  })

  describe('a program that speaks ACP', () => {
    const stageOf = stageOn(acpDriver)
    askedCase(stageOf, acpDriver)
    strictCase(stageOf)
  })
})

beside('quick programs', () => {
  describe('codex', () => {
    const stageOf = stageOn(codexDriver)

    test('its first start was made apart, behind a wall where there is one, so that its runs begin with databases', async () => {
      const all = join(stageOf().device.stateDir, 'first-starts')
      const kept = await waitFor(
        () => (existsSync(all) ? readdirSync(all).find((name) => /^codex-[\d.]+-\d+$/.test(name)) : null),
        'a first start of codex is kept',
      )
      const names = readdirSync(join(all, kept))
      expect(names).toEqual(expect.arrayContaining(['state_5.sqlite', 'thread_history_1.sqlite']))
      expect(names.filter((name) => !/\.sqlite(-wal)?$/.test(name))).toEqual([])
    })

    approvedCase(stageOf, codexDriver, { always: true })
  })

  describe('claude', () => {
    const stageOf = stageOn(claudeDriver)
    approvedCase(stageOf, claudeDriver)
    answeredCase(stageOf, claudeDriver)
  })

  describe('a stand-in for Cursor', () => {
    cursorCases(systemOf)
  })
})

describe('claude and codex', () => {
  const stageOf = stageOn(claudeDriver)
  stageOn(codexDriver)

  test('a task that the real claude began, and whose provider fails, is finished by the real codex', async () => {
    const { api, device, system, stub } = stageOf()
    const folder = join(system.root, 'Builder')
    makeRepo(folder)
    const { publicId } = device.identity
    const { shortId } = await api.addFolder({ displayName: 'Builder', rootPath: folder, deviceId: publicId })
    const agent = await api.createAgent({
      name: 'Builder',
      harness: 'claude',
      fallbackHarness: 'codex',
      model: 'claude-opus-4-5',
      defaultFolderId: shortId,
    })
    // It is told not to try again, which it would do for seconds.
    const headers = { 'x-should-retry': 'false' }
    const failures = Array.from({ length: 20 }, () => ({ error: { status: 529, headers } }))
    await stub.script({
      claude: { steps: [{ text: 'I begin.', tool: claudeDriver.shell('echo claude >> who.txt') }, ...failures] },
      codex: { steps: [{ text: 'I go on.', tool: codexDriver.shell('echo codex >> who.txt') }, { text: 'Done.' }] },
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
})

describe('claude in a workflow', () => {
  workflowCase(stageOn(claudeDriver))
})

describe('at the end of their device', () => {
  serverCases(stageOn(claudeDriver), claudeDriver)
  endsCase(stageOn(codexDriver), codexDriver)
})
