import { describe, expect, it } from 'vitest'
import type { RunEventBody } from '../../../shared/runs/events.ts'
import type { StepCommand } from '../../../shared/runs/spec.ts'
import { specOf } from '../../../test/kit/harness-recordings.ts'
import type { CallDecision, DialogueOutput, ProcessExit } from '../adapter.ts'
import { adapterOfRun } from '../registry.ts'
import { commandStepAdapter } from './adapter.ts'

const gateOf = (changes: Partial<StepCommand> = {}): StepCommand => ({
  argv: ['make', 'all things'],
  cwd: null,
  needsRule: false,
  ...changes,
})
const dialogueOf = (gate = gateOf()) => commandStepAdapter.dialogue(specOf({ harness: 'command', command: null, gate }))
const exited = (exitCode: number | null, signal: string | null = null): ProcessExit => ({
  exitCode,
  signal,
  stoppedFor: null,
})
const allow: CallDecision = { behavior: 'allow', rule: null }
const ready = Buffer.from('ready\0/w/sub\0')

const resultOf = ({ events }: DialogueOutput): Extract<RunEventBody, { kind: 'result' }>['data'] => {
  const last = events.at(-1)
  if (last?.kind !== 'result') throw new Error('no result')
  return last.data
}

it('drives every run of a command step, whatever its agent is', () => {
  expect(adapterOfRun(specOf({ harness: 'command', command: null, gate: gateOf() }))).toBe(commandStepAdapter)
})

describe('its command', () => {
  it('is asked as the shell call that it is, once the shell says where it is, in whatever pieces', () => {
    for (let cut = 0; cut <= ready.length; cut++) {
      const dialogue = dialogueOf(gateOf({ cwd: 'sub' }))
      const first = dialogue.push(ready.subarray(0, cut))
      const { asks, events } = cut === ready.length ? first : dialogue.push(ready.subarray(cut))
      const input = { command: "make 'all things'", description: 'A gate of a workflow, in the folder sub.' }
      expect(asks).toEqual([{ askId: 'gate', toolCallId: 'gate', name: 'Bash', input, cwd: '/w/sub' }])
      expect(events).toEqual([{ kind: 'tool_call', data: { toolCallId: 'gate', name: 'Bash', input } }])
    }
  })

  it('is let start when it is allowed, and not before; then all is its output, zero bytes too', () => {
    const dialogue = dialogueOf()
    expect(dialogue.answer('gate', allow)).toEqual({ events: [] })
    dialogue.push(ready)
    expect(dialogue.push(Buffer.from('early'))).toEqual({ events: [] })
    expect(dialogue.answer('other', allow)).toEqual({ events: [] })
    expect(dialogue.answer('gate', allow)).toEqual({ events: [], write: 'go\n', closeInput: true })
    expect(dialogue.answer('gate', allow)).toEqual({ events: [] })
    expect(dialogue.push(Buffer.from('ready\0x')).events).toEqual([{ kind: 'text', data: { text: 'ready\0x' } }])
    expect(resultOf(dialogue.end(exited(0)))).toMatchObject({
      isError: false,
      gate: { exitCode: 0, cwd: '/w/sub', ranArgv: ['make', 'all things'] },
    })
    expect(dialogue.outcome(exited(0))).toMatchObject({ exitReason: 'completed' })
  })

  it.each([
    [exited(3), 3],
    [exited(null, 'SIGKILL'), 137],
    [{ ...exited(null, 'SIGTERM'), stoppedFor: 'timeout' as const }, null],
  ])('that began and left by %o has the status %s, and its run is no failure of itself', (exit, exitCode) => {
    const dialogue = dialogueOf()
    dialogue.push(ready)
    dialogue.answer('gate', allow)
    expect(resultOf(dialogue.end(exit))).toMatchObject({ isError: true, gate: { exitCode, cwd: '/w/sub' } })
    const { exitReason } = dialogue.outcome(exit)
    expect(exitReason).toBe(exit.stoppedFor ?? 'completed')
  })
})

describe('a command that is not started', () => {
  const refusedBy = (push: string, decision?: CallDecision, gate = gateOf({ cwd: 'sub' })) => {
    const dialogue = dialogueOf(gate)
    let output = dialogue.push(Buffer.from(push))
    if (decision !== undefined) output = dialogue.answer('gate', decision)
    const { gate: told, isError } = resultOf(dialogue.end(exited(1)))
    return { endNow: output.endNow, written: output.write, told, isError, ...dialogue.outcome(exited(1)) }
  }
  const nothing = { exitCode: null, cwd: null, ranArgv: null }

  it.each([
    ['cwd_outside\0\0', 'cwd_outside', "The folder sub lies outside of the run's folder."],
    ['cwd_missing\0\0', 'cwd_missing', 'The folder sub cannot be entered.'],
    ['hello\0/w\0', 'cwd_missing', 'The shell of the gate did not say where it is.'],
    ['x'.repeat(70_000), 'cwd_missing', 'The shell of the gate did not say where it is.'],
  ])('says why (%#)', (said, refused, message) => {
    expect(refusedBy(said)).toMatchObject({
      endNow: true,
      told: { ...nothing, refused },
      isError: true,
      exitReason: 'error',
      message,
    })
  })

  it('is denied by the rules, or, where one must allow it, by none that does', () => {
    const deny: CallDecision = { behavior: 'deny', message: 'Bash(make) was denied. Go on without it.' }
    expect(refusedBy('ready\0/w\0', deny)).toMatchObject({
      endNow: true,
      told: { ...nothing, refused: 'denied' },
      message: 'Bash(make) was denied.',
    })
    const strict = gateOf({ needsRule: true })
    for (const rule of [null, 'svc'])
      expect(refusedBy('ready\0/w\0', { behavior: 'allow', rule }, strict)).toMatchObject({
        endNow: true,
        written: undefined,
        told: { refused: 'denied' },
      })
    const ruled = dialogueOf(strict)
    ruled.push(ready)
    expect(ruled.answer('gate', { behavior: 'allow', rule: 'Bash(make *)' }).write).toBe('go\n')
  })

  it('has not begun when its shell ends before', () => {
    const dialogue = dialogueOf()
    dialogue.push(ready)
    expect(resultOf(dialogue.end(exited(1))).gate).toEqual(nothing)
    expect(dialogue.outcome(exited(1)).exitReason).toBe('harness_start_failed')
  })
})
