import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { waitFor } from '../kit/programs.ts'
import { acpDriver, claudeDriver, codexDriver, opencodeDriver } from './harness/drivers.ts'
import { alwaysCase, answeredCase, askedCase, endsCase } from './harness/joined-cases.ts'
import { cursorCases, installCursor } from './harness/cursor-cases.ts'
import { serverCases } from './harness/server-cases.ts'
import { stagesFor } from './harness/stage.ts'
import { workflowCase } from './harness/workflow-case.ts'

// What the short form shows of the real harnesses, on one device that has them: CONTRIBUTING.md has the table. Recordings stand for the
// rest of the cases; the long form has them in harness-acp, -claude, -codex and -opencode.

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
    // That the mode strict does not start it shows `acp/dialogue.test.ts`.
    askedCase(stageOf, acpDriver)
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

    alwaysCase(stageOf, codexDriver)
  })

  describe('claude', () => {
    const stageOf = stageOn(claudeDriver)
    answeredCase(stageOf, claudeDriver)
  })

  describe('a stand-in for Cursor', () => {
    cursorCases(systemOf)
  })
})

describe('claude in a workflow', () => {
  workflowCase(stageOn(claudeDriver))
})

describe('at the end of their device', () => {
  endsCase(stageOn(codexDriver), codexDriver)

  // api/dispatch/circuits.test.ts hands a task on as its provider fails, this one as it has a limit.
  describe('claude and codex', () => {
    stageOn(codexDriver)
    serverCases(stageOn(claudeDriver))
  })
})
