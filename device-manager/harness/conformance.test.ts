import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { runEventSchemas } from '../../shared/runs/events.ts'
import { exitReasonNames } from '../../shared/runs/exit-reasons.ts'
import { isLong } from '../../test/kit/forms.ts'
import { canonical, merged, outputBytes, recording, recordingNames, specOf } from '../../test/kit/harness-recordings.ts'
import type { HarnessAdapter, ProcessExit, DialogueOutput } from './adapter.ts'
import { acpAdapter } from './acp/adapter.ts'
import { cursorAdapter } from './cursor/adapter.ts'
import { cursorDialogue } from './cursor/dialogue.ts'
import { adapterOfRun, adapters } from './registry.ts'

const terminalOutput = Buffer.from('\x1b[32m✓\x1b[0m häßlich \u{1f980}\r\nline two\r\n')

const recordings = (harness: string) =>
  recordingNames(harness).map((name) => ({ name, bytes: recording(harness, name) }))

/** Every adapter must be here: one that is not fails the test. */
const transcripts: Record<string, { name: string; bytes: Uint8Array }[]> = {
  claude: recordings('claude'),
  codex: recordings('codex'),
  opencode: recordings('opencode'),
  cursor: recordings('cursor').filter(({ name }) => name === 'acp'),
  'cursor in print mode': recordings('cursor').filter(({ name }) => name !== 'acp'),
  acp: recordings('acp'),
  command: [
    { name: 'colours and characters', bytes: terminalOutput },
    { name: 'no text', bytes: Buffer.concat([Buffer.from([0xff, 0xfe, 0x80, 0x6f, 0xc3]), terminalOutput]) },
    { name: 'long', bytes: Buffer.alloc(300_000, 'äöü€') },
  ],
}

const acpReady = [
  { jsonrpc: '2.0', id: 1, result: { protocolVersion: 1, agentCapabilities: {} } },
  { jsonrpc: '2.0', id: 2, result: { sessionId: 'ses_1' } },
]
/** After which a harness takes text from a person. */
const ready: Record<string, readonly unknown[]> = {
  claude: [{ type: 'control_response', response: { subtype: 'success', request_id: 'initialize' } }],
  codex: [
    { id: 2, result: { thread: { id: 'thread' } } },
    { id: 3, result: { turn: { id: 'turn' } } },
  ],
  opencode: [
    { stdout: JSON.stringify({ svc: 'ready', directory: '/home/dev', servers: [] }) },
    { answer: { id: 1, status: 200, body: { id: 'ses_1', directory: '/home/dev' } } },
  ],
  cursor: acpReady,
  acp: acpReady,
}
/** Says where the text waits for the end of the turn. */
const acpEnd = { jsonrpc: '2.0', id: 3, result: { stopReason: 'end_turn' } }
const turnEnd: Record<string, unknown> = { acp: acpEnd, cursor: acpEnd }

const exits: ProcessExit[] = [
  { exitCode: 0, signal: null, stoppedFor: null },
  { exitCode: 1, signal: null, stoppedFor: null },
  { exitCode: null, signal: 'SIGKILL', stoppedFor: null },
  { exitCode: null, signal: 'SIGTERM', stoppedFor: 'interrupted' },
]

/** All that comes out when the bytes arrive in these chunks, each in memory that is then used again. */
function read(adapter: HarnessAdapter, chunks: readonly Uint8Array[]): Required<DialogueOutput> {
  const dialogue = adapter.dialogue(specOf({ harness: adapter.name }))
  const outputs = chunks.map((chunk) => {
    const memory = Uint8Array.from(chunk)
    const output = dialogue.push(memory)
    memory.fill(0x2a)
    return output
  })
  return merged([...outputs, dialogue.end()])
}

function cut(bytes: Uint8Array, at: readonly number[]): Uint8Array[] {
  const places = [0, ...at.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
  return places.slice(1).map((place, index) => bytes.subarray(places[index], place))
}

function expectValid(output: Required<DialogueOutput>): void {
  for (const event of output.events) {
    const parsed = runEventSchemas[event.kind].safeParse(event.data)
    expect(parsed.error, `${event.kind} ${JSON.stringify(event.data).slice(0, 300)}`).toBeUndefined()
    expect(Buffer.byteLength(JSON.stringify(event))).toBeLessThan(4 * 1024 * 1024)
  }
}

const cuts = fc.array(fc.nat(400_000), { maxLength: 40 })

const cursorInPrintMode: HarnessAdapter = {
  ...cursorAdapter,
  can: { ...cursorAdapter.can, input: false },
  dialogue: cursorDialogue,
}

const named = [
  ...adapters.map((adapter) => ({ adapter, name: adapter.name as string })),
  { adapter: acpAdapter, name: 'acp' },
  { adapter: cursorInPrintMode, name: 'cursor in print mode' },
]

describe.each(named)('$name', ({ adapter, name }) => {
  const recorded = transcripts[name] ?? []

  it('has transcripts here', () => {
    expect(recorded.length).toBeGreaterThan(0)
  })

  it.each(recorded)('reads the same from "$name" wherever its bytes are cut', ({ bytes }) => {
    const whole = read(adapter, [bytes])
    expectValid(whole)
    fc.assert(
      fc.property(cuts, (at) => {
        const parts = read(adapter, cut(bytes, at))
        expect({ ...parts, events: canonical(parts.events) }).toEqual({ ...whole, events: canonical(whole.events) })
      }),
      { numRuns: isLong ? 20 : 8 },
    )
  })

  it.each(recorded.filter(({ bytes }) => bytes.length < 20_000))(
    'reads from "$name" one byte at a time what it reads at once',
    ({ bytes }) => {
      const single = read(adapter, cut(bytes, [...bytes.keys()]))
      expect(canonical(single.events)).toEqual(canonical(read(adapter, [bytes]).events))
    },
  )

  it.each(recorded)('pairs the tool calls and results of "$name"', ({ bytes }) => {
    const called = new Set<string>()
    const unasked: string[] = []
    for (const { kind, data } of read(adapter, [bytes]).events) {
      if (kind === 'tool_call') called.add(data.toolCallId)
      if (kind === 'tool_result' && !called.has(data.toolCallId)) unasked.push(data.toolCallId)
    }
    expect(unasked).toEqual([])
  })

  it('never throws, yields only valid events and always has an outcome, whatever it reads', () => {
    const damaged = fc
      .tuple(
        fc.constantFrom(...recorded.map(({ bytes }) => bytes)),
        fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 30 }),
      )
      .map(([bytes, changes]) => {
        const copy = Uint8Array.from(bytes)
        for (const [place, byte] of changes) copy[place % copy.length] = byte
        return copy
      })
    const lines = fc
      .array(fc.json({ maxDepth: 3 }), { maxLength: 10 })
      .map((values) => Buffer.from(values.join('\n') + '\n') as Uint8Array)
    fc.assert(
      fc.property(
        fc.oneof(fc.uint8Array({ maxLength: 2_000 }), damaged, lines),
        fc.constantFrom(...exits),
        cuts,
        (bytes, exit, at) => {
          const dialogue = adapter.dialogue(specOf({ harness: adapter.name }))
          dialogue.open()
          const outputs = cut(bytes, at).flatMap((chunk) => [dialogue.push(chunk), dialogue.pushStderr(chunk)])
          expectValid(merged([...outputs, dialogue.end(exit)]))
          const { exitReason } = dialogue.outcome(exit)
          expect(exit.stoppedFor === null ? exitReasonNames : [exit.stoppedFor]).toContain(exitReason)
        },
      ),
      { numRuns: isLong ? 300 : 100 },
    )
  })

  it('loses no byte of what it does not understand', () => {
    // No byte of these lines can be JSON, so all of them must come out as they went in.
    const noise = fc.uint8Array({ min: 0x80, max: 0xff, maxLength: 3_000 })
    fc.assert(
      fc.property(noise, cuts, (bytes, at) => {
        const kept = read(adapter, cut(bytes, at)).events.flatMap((event) => outputBytes(event) ?? [])
        expect(Buffer.concat(kept).toString('hex')).toBe(Buffer.from(bytes).toString('hex'))
      }),
      { numRuns: isLong ? 100 : 40 },
    )
  })

  it('takes text from a person only where it says so', () => {
    const dialogue = adapter.dialogue(specOf({ harness: adapter.name }))
    for (const line of ready[name] ?? []) dialogue.push(Buffer.from(`${JSON.stringify(line)}\n`))
    const outputs = [dialogue.input('go on')]
    if (name in turnEnd) outputs.push(dialogue.push(Buffer.from(`${JSON.stringify(turnEnd[name])}\n`)))
    expect(merged(outputs).write.includes('go on')).toBe(adapter.can.input)
  })
})

const spokenToOtherwise = {
  'codex-exec': adapterOfRun({ harness: 'codex' }),
  'opencode-run': adapterOfRun({ harness: 'opencode' }),
}
describe.each(Object.entries(spokenToOtherwise))('a stream of %s, by which svc does not drive it', (from, adapter) => {
  it.each(recordings(from))('is kept raw and is no success: "$name"', ({ bytes }) => {
    const dialogue = adapter.dialogue(specOf({ harness: adapter.name }))
    const { events } = merged([dialogue.open(), dialogue.push(bytes), dialogue.end()])
    expect(new Set(events.map(({ kind }) => kind))).toEqual(new Set(['raw']))
    expect(Buffer.concat(events.map((event) => outputBytes(event)!)).equals(bytes)).toBe(true)
    expect(dialogue.outcome(exits[0]!)).toMatchObject({ exitReason: 'harness_start_failed' })
  })
})
