import { idFrom, type DeviceRef } from '../../../shared/lib/ids.ts'
import { describe, expect, it } from 'vitest'
import { circuitAfter, knownUse, roomAt, type AccountUse, type Circuit, type Ended } from './rules.ts'

const min = 60_000
const t = 1_000 * min
const ended = (minutesAgo: number, changes: Partial<Ended> = {}): Ended => ({
  device: idFrom<DeviceRef>('dvc_a'),
  harness: 'claude',
  modelId: null,
  status: 'failed',
  providerFailed: true,
  endedAt: t - minutesAgo * min,
  ...changes,
})
const success = (minutesAgo: number) => ended(minutesAgo, { status: 'succeeded', providerFailed: null })
const after = (others: Ended[], before: Circuit | null = null) =>
  circuitAfter({ device: idFrom('dvc_a'), provider: 'claude', at: t }, { before, ended: others })
const opened = (times: number, ms: number) => ({
  device: idFrom<DeviceRef>('dvc_a'),
  provider: 'claude',
  times,
  openedAt: t,
  openUntil: t + ms,
})
const circuit = (times: number, openedAgo: number, openAgo: number): Circuit => ({
  ...opened(times, 0),
  openedAt: t - openedAgo * min,
  openUntil: t - openAgo * min,
})

describe('the breaker of a provider', () => {
  it('opens at the third failure in a row', () => {
    expect(after([])).toBeNull()
    expect(after([ended(1)])).toBeNull()
    expect(after([ended(1), ended(2)])).toEqual(opened(1, 30_000))
  })

  it('counts no failure before a success, long ago, of another device or provider, or of the agent itself', () => {
    expect(after([ended(1), success(2), ended(3)])).toBeNull()
    expect(after([ended(1), ended(15)])).toBeNull()
    expect(after([ended(1), ended(2, { device: idFrom<DeviceRef>('dvc_b') })])).toBeNull()
    expect(after([ended(1), ended(2, { harness: 'codex' })])).toBeNull()
    expect(after([ended(1), ended(2, { providerFailed: null })])).toBeNull()
    // A success elsewhere is none here.
    expect(after([ended(1), { ...success(2), device: idFrom<DeviceRef>('dvc_b') }, ended(3)])).toEqual(
      opened(1, 30_000),
    )
  })

  it('tells providers of one harness apart by their models', () => {
    const opencode = (modelId: string) => ended(1, { harness: 'opencode', modelId })
    const failure = { device: idFrom<DeviceRef>('dvc_a'), provider: 'opencode/anthropic', at: t }
    const [one, other] = [opencode('anthropic/claude-opus-4-5'), opencode('openai/gpt-5')]
    expect(circuitAfter(failure, { before: null, ended: [one, other] })).toBeNull()
    expect(circuitAfter(failure, { before: null, ended: [one, one] })).not.toBeNull()
  })

  it('stays as it is when others fail that were at work, and opens for longer when a trial fails', () => {
    expect(after([ended(0), ended(0)], circuit(1, 0, -0.5))).toBeNull()
    expect(after([], circuit(1, 1, 0.5))).toEqual(opened(2, 60_000))
    expect(after([], circuit(2, 2, 1))).toEqual(opened(3, 120_000))
    expect(after([], circuit(20, 20, 10))).toEqual(opened(21, 600_000))
    // A success, or a long time, begins anew.
    expect(after([success(0.2)], circuit(4, 1, 0.5))).toBeNull()
    expect(after([], circuit(4, 20, 15))).toBeNull()
  })

  it('lets one run through for a minute when it was open', () => {
    expect(roomAt(t - 1, { openUntil: t, live: 0 })).toEqual({ room: 0, opensAt: t })
    expect(roomAt(t, { openUntil: t, live: 0 })).toEqual({ room: 1, opensAt: t + min })
    expect(roomAt(t, { openUntil: t, live: 2 })).toEqual({ room: 0, opensAt: t + min })
  })
})

describe('what is known of the limits of an account', () => {
  const limit = (windowMinutes: number, usedPercent: number, inMin: number, models: string | null = null) => ({
    windowMinutes,
    models,
    usedPercent,
    resetsAt: t + inMin * min,
  })
  const told = (inMin: number, ...used: ReturnType<typeof limit>[]): AccountUse => ({
    used,
    toldAt: t + inMin * min,
    trueUntil: Math.max(...used.map(({ resetsAt }) => resetsAt)),
  })
  const namesIn = (use: AccountUse) => use.used.map((one) => [one.windowMinutes, one.usedPercent, one.toldAt])

  it('keeps a limit that the next run is not told of, until it begins anew', () => {
    const first = knownUse(null, told(0, limit(300, 40, 60), limit(10_080, 10, 600, 'opus')))
    const second = knownUse(first, told(10, limit(300, 50, 60)))
    expect(namesIn(second)).toEqual([
      [300, 50, t + 10 * min],
      [10_080, 10, t],
    ])
    expect([second.toldAt, second.trueUntil]).toEqual([t + 10 * min, t + 600 * min])
    expect(namesIn(knownUse(second, told(700, limit(300, 1, 900))))).toEqual([[300, 1, t + 700 * min]])
  })

  it('is what was told latest, in whichever order it comes', () => {
    const one = told(0, limit(300, 40, 60), limit(10_080, 10, 600))
    const other = told(10, limit(300, 50, 60))
    expect(knownUse(other, one)).toEqual(knownUse(one, other))
  })

  it('is bounded, whatever a device tells', () => {
    let known: AccountUse | null = null
    for (let at = 1; at <= 50; at++) known = knownUse(known, told(at, limit(at, at, 600)))
    expect(namesIn(known!).map(([window]) => window)).toEqual([43, 44, 45, 46, 47, 48, 49, 50])
  })
})
