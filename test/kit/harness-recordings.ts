import { idFrom } from '../../shared/lib/ids.ts'
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { DialogueOutput } from '../../device-manager/harness/adapter.ts'
import type { RunEventBody } from '../../shared/runs/events.ts'
import type { RunSpec } from '../../shared/runs/spec.ts'

const folderOf = (harness: string) => join(import.meta.dirname, '../fixtures/harness', harness)

/** Returns what a real harness wrote, as test/fixtures/harness keeps it. */
export function recording(harness: string, name: string): Buffer {
  return readFileSync(join(folderOf(harness), `${name}.jsonl`))
}

export const recordingNames = (harness: string): string[] =>
  readdirSync(folderOf(harness)).map((file) => basename(file, '.jsonl'))

export function specOf(changes: Partial<RunSpec> = {}): RunSpec {
  return {
    runId: idFrom('run_0000000000000001'),
    workspaceId: idFrom('ws_0000000000000001'),
    agent: { id: idFrom('agt_0000000000000001'), handle: 'ada', name: 'Ada' },
    harness: 'claude',
    folder: null,
    prompt: 'Create the file.',
    agentMd: '',
    model: null,
    backupModel: null,
    reasoningEffort: null,
    maxTurns: null,
    command: null,
    permissions: { allow: [], ask: [], deny: [], defaultMode: 'ask' },
    allowCalls: [],
    mcpServers: {},
    resumeSessionId: null,
    limits: { runMs: 60_000, noProgressMs: 60_000, firstEventMs: 60_000, toolCalls: 100, silentMs: 60_000 },
    ...changes,
  }
}

/** Outputs as one: what the host does with them, in order. */
export function merged(outputs: readonly DialogueOutput[]): Required<DialogueOutput> {
  return {
    events: outputs.flatMap((output) => output.events),
    write: outputs.map((output) => output.write ?? '').join(''),
    finished: outputs.some((output) => output.finished === true),
    endNow: outputs.some((output) => output.endNow === true),
    closeInput: outputs.some((output) => output.closeInput === true),
    asks: outputs.flatMap((output) => output.asks ?? []),
  }
}

/**
 * Events in a form that does not depend on where the bytes were cut: neighbouring pieces of one output are one. `text` of
 * a structured harness comes from whole lines, so only equal cuts give equal pieces there too.
 */
export function canonical(events: readonly RunEventBody[]): unknown[] {
  const canon: { of: string; bytes: Buffer; event: RunEventBody }[] = []
  for (const event of events) {
    const bytes = outputBytes(event)
    const of = event.kind === 'raw' ? `raw ${event.data.stream}` : event.kind
    const last = canon.at(-1)
    if (bytes !== null && last?.of === of) last.bytes = Buffer.concat([last.bytes, bytes])
    else canon.push({ of, bytes: bytes ?? Buffer.alloc(0), event })
  }
  return canon.map(({ of, bytes, event }) =>
    outputBytes(event) === null ? event : { of, bytes: bytes.toString('hex') },
  )
}

/** The bytes that `raw` and `text` events stand for. */
export function outputBytes(event: RunEventBody): Buffer | null {
  if (event.kind !== 'raw' && event.kind !== 'text') return null
  const { text, base64 } = event.data
  return text === undefined ? Buffer.from(base64 ?? '', 'base64') : Buffer.from(text, 'utf8')
}
