import { idFrom, type RunId } from '../../shared/lib/ids.ts'
import { describe, expect, it } from 'vitest'
import { askedCallFixture } from '../../test/kit/asked-call.ts'
import { decodeFrame, encodeFrame } from '../../shared/device/frame.ts'
import { askedCallLimits, type AskedCall } from '../../shared/runs/asked-call.ts'
import type { RunEventBody } from '../../shared/runs/events.ts'
import type { SpoolRow } from '../spool/spool.ts'
import { summarize } from './frame-summary.ts'

const row = (seq: number, { kind, data }: RunEventBody): SpoolRow => ({
  seq,
  line: Buffer.from(`${JSON.stringify({ seq, at: 1_767_225_600_000, kind, data })}\n`),
})
const asking = ({ toolCallId, name, ...ask }: AskedCall): RunEventBody => ({
  kind: 'permission',
  data: { name, decision: 'ask', ...(toolCallId !== null && { toolCallId }), ask },
})

/** Takes the rows frame by frame, as the forwarder does, through the real encoding. */
function frames(rows: readonly SpoolRow[]) {
  const all = []
  for (let rest = rows; rest.length > 0;) {
    const { rows: taken, told } = summarize(rest)
    expect(taken.length).toBeGreaterThan(0)
    const body = Buffer.concat(taken.map(({ line }) => line))
    const [firstSeq, lastSeq] = [taken[0]!.seq, taken.at(-1)!.seq]
    const header = {
      type: 'run.events' as const,
      runId: idFrom<RunId>('run_0123456789abcdef'),
      fence: 1,
      firstSeq,
      lastSeq,
      ...told,
    }
    const decoded = decodeFrame(encodeFrame({ ...header, sha256: 'a'.repeat(64) }, body))
    if (!decoded.ok || decoded.header.type !== 'run.events') throw new Error(JSON.stringify(decoded))
    all.push(decoded.header)
    rest = rest.slice(taken.length)
  }
  return all
}

describe('what a header tells of its rows', () => {
  it('counts kinds and lifts usage, session and asked calls out', () => {
    const call = askedCallFixture()
    const withoutId = askedCallFixture({ toolCallId: null, inputDigest: 'b'.repeat(64) })
    const rows = [
      row(1, { kind: 'session', data: { sessionId: 'abc' } }),
      row(2, { kind: 'usage', data: { inputTokens: 1 } }),
      row(3, { kind: 'usage', data: { inputTokens: 5 } }),
      row(4, { kind: 'permission', data: { name: 'Read', decision: 'allow', rule: 'Read' } }),
      row(5, asking(call)),
      row(6, asking(withoutId)),
    ]
    expect(summarize(rows)).toEqual({
      rows,
      told: {
        kinds: { session: 1, usage: 2, permission: 3 },
        usage: { inputTokens: 5 },
        sessionId: 'abc',
        approvals: [call, withoutId],
      },
    })
    expect(summarize(rows.slice(0, 4)).told).not.toHaveProperty('approvals')
  })

  it('tells what it cannot read as nothing', () => {
    const broken = { seq: 1, line: Buffer.from('{"seq":1,"at":1,"kind":"permission","data":{"ask":7}}\n') }
    expect(summarize([broken]).told).toEqual({ kinds: { permission: 1 } })
  })

  it('fits into a header with the largest calls there may be, in as many frames as that takes', () => {
    const most = (at: number) =>
      askedCallFixture({
        toolCallId: '\u0001'.repeat(askedCallLimits.idChars),
        name: '"'.repeat(askedCallLimits.nameChars),
        inputDigest: String(at).padStart(64, '0'),
        safeSummary: '\u{20ac}'.repeat(askedCallLimits.summaryChars),
        prompt: '\u{20ac}'.repeat(askedCallLimits.promptChars),
        toolArgs: { command: 'x'.repeat(askedCallLimits.argsBytes - 14) },
      })
    const calls = Array.from({ length: 50 }, (_, at) => most(at))
    const rows = calls.flatMap((call, at) => [
      row(2 * at + 1, { kind: 'text', data: { text: 'x' } }),
      row(2 * at + 2, asking(call)),
    ])
    const headers = frames(rows)
    expect(headers.flatMap(({ approvals }) => approvals ?? [])).toEqual(calls)
    expect(headers.flatMap(({ firstSeq, lastSeq }) => lastSeq - firstSeq + 1).reduce((a, b) => a + b)).toBe(100)
    const small = Array.from({ length: 50 }, (_, at) => askedCallFixture({ inputDigest: String(at).padStart(64, '0') }))
    const counts = frames(small.map((call, at) => row(at + 1, asking(call)))).map(({ approvals }) => approvals?.length)
    expect(counts).toEqual([20, 20, 10])
  })
})
