import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isLong } from '../../kit/forms.ts'
import { goneMs, wholeLog } from '../../kit/invariants.ts'
import { nothingNames, waitFor } from '../../kit/programs.ts'
import { makeRepo } from '../../kit/system-scenario.ts'
import type { TestSystem } from '../../kit/system.ts'

// A stand-in for Cursor through the whole system: the real one cannot be had without an account.

/** Installs it as on a person's machine, beside what is there. */
export function installCursor(home: string): void {
  const bin = join(home, 'bin')
  mkdirSync(bin, { recursive: true })
  const program = join(import.meta.dirname, '../../kit/stand-in-cursor.mjs')
  writeFileSync(join(bin, 'cursor-agent'), `#!/bin/sh\nexec '${process.execPath}' '${program}' "$@"\n`, { mode: 0o755 })
  appendFileSync(join(home, '.profile'), `export PATH='${bin}':"$PATH"\n`)
}

async function agentIn(system: TestSystem, name: string, tools: object): Promise<{ id: string; folder: string }> {
  const { api, root, device } = system
  const folder = join(root, name)
  makeRepo(folder)
  const { shortId } = await api.addFolder({ displayName: name, rootPath: folder, deviceId: device.identity.publicId })
  const { id } = await api.createAgent({ name: `Cursor ${name.length}`, harness: 'cursor', defaultFolderId: shortId })
  await api.call('PUT', `/agents/${id}/config`, { config: { permissions: { tools } } })
  return { id, folder }
}

type Case = [string, object, 'completed' | 'error', boolean]
export function cursorCases(systemOf: () => TestSystem): void {
  // In the short form cursor-stand-in.test.ts has a call that is allowed, and cursor.test.ts what print mode tells.
  const longOnes: Case[] = [
    ['by ACP, allowed by a rule', { defaultMode: 'ask', allow: ['Bash'] }, 'completed', true],
    ['in print mode, whose process lingers', {}, 'completed', false],
  ]
  test.each<Case>([['by ACP, denied', { deny: ['Bash(echo *)'] }, 'error', false], ...(isLong ? longOnes : [])])(
    'a run %s ends',
    async (name, tools, exitReason, isMade) => {
      const system = systemOf()
      const { api } = system
      const { id, folder } = await agentIn(system, name, tools)
      const runId = await api.startRun(id, 'Create hello.txt')
      const run = await api.waitForRun(runId, exitReason === 'completed' ? 'succeeded' : 'failed')
      expect(run).toMatchObject({ exitReason, harness: { id: 'cursor' }, toolCallCount: 1 })
      const events = await api.events(runId)
      wholeLog(events, exitReason)
      expect(events.find(({ kind }) => kind === 'tool_call')?.data).toMatchObject({
        name: 'Bash',
        input: { command: 'echo hello > hello.txt' },
      })
      const made = join(folder, 'hello.txt')
      expect(existsSync(made) && readFileSync(made, 'utf8')).toBe(isMade && 'hello\n')
      await nothingNames(runId, goneMs)
    },
  )

  test('a call that the host had to allow is never made when the host is killed while it waits', async () => {
    const system = systemOf()
    const { api, device } = system
    const { id, folder } = await agentIn(system, 'killed', { defaultMode: 'ask', allow: ['Bash'] })
    const at = (name: string) => join(folder, name)
    writeFileSync(at('hold'), '')
    const runId = await api.startRun(id, 'Create hello.txt')
    await waitFor(() => existsSync(at('begun')), 'the program has its prompt')
    const { pid } = await device.hostOf(runId)
    process.kill(pid, 'SIGSTOP')
    try {
      writeFileSync(at('go'), '')
      await waitFor(() => existsSync(at('asked')), 'the program asks')
    } finally {
      process.kill(pid, 'SIGKILL')
    }
    expect(await api.waitForRun(runId, 'failed')).toMatchObject({ exitReason: 'crashed' })
    await nothingNames(runId, goneMs)
    expect(existsSync(at('hello.txt'))).toBe(false)
  })

  // In the short form cursor.test.ts shows that it is refused.
  if (isLong) {
    test('in the mode strict, which print mode and ACP cannot hold, it is not started', async () => {
      const system = systemOf()
      const { api } = system
      const { id, folder } = await agentIn(system, 'strict', { defaultMode: 'strict', allow: ['Bash'] })
      writeFileSync(join(folder, 'hold'), '')
      const runId = await api.startRun(id, 'Create hello.txt')
      const run = await api.waitForRun(runId, 'failed')
      expect(run).toMatchObject({ exitReason: 'harness_start_failed', errorMessage: expect.stringContaining('strict') })
      expect((await api.events(runId)).map(({ kind }) => kind)).not.toContain('started')
      expect(['begun', 'hello.txt'].filter((name) => existsSync(join(folder, name)))).toEqual([])
    })
  }
}
