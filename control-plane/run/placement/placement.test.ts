import { idFrom, type DeviceRef, type PersonUuid, type SecretId } from '../../../shared/lib/ids.ts'
import { describe, expect, it } from 'vitest'
import { quotaAt, type Quota } from '../../resources/quotas/rules.ts'
import type { DeviceFacts, RunFacts } from '../places/place.ts'
import { describeGate, placeAll, placeRun } from './placement.ts'

const device = (publicId: DeviceRef, changes: Partial<DeviceFacts> = {}): DeviceFacts => ({
  publicId,
  displayName: `machine ${publicId}`,
  personUuid: idFrom('me'),
  liveness: 'connected',
  isLinked: true,
  isController: false,
  isSandbox: false,
  remoteControlRevoked: false,
  runsBy: 'members',
  isOfAdmin: false,
  accepting: true,
  unready: new Map(),
  accounts: {},
  capacity: 3,
  used: 0,
  ...changes,
})
const run = (changes: Partial<RunFacts> = {}): RunFacts => ({
  agentRef: idFrom('agt_1'),
  cloud: null,
  harness: 'claude',
  keyId: null,
  provider: 'claude',
  fallback: null,
  folderDevice: null,
  sessionDevice: null,
  isForSession: false,
  ownerUuid: idFrom<PersonUuid>('me'),
  waitsForOtherRun: false,
  ahead: [],
  isOfPrivateAgent: false,
  isConfidential: false,
  wordsBy: [],
  isOwnerAsked: false,
  causedByUuid: idFrom<PersonUuid>('me'),
  isCauseGone: false,
  ...changes,
})
const nothing = {
  cloudRoom: null,
  rateLimited: new Set<string>(),
  quotas: new Map<string, Quota>(),
  circuits: new Map<string, Quota>(),
  admins: new Set<PersonUuid>(),
}
const place = (facts: RunFacts, devices: DeviceFacts[], defaultDevice: DeviceRef | null = null) =>
  placeRun(facts, { ...nothing, devices, defaultDevice, admins: new Set([idFrom('boss')]) })
const on = (publicId: string) => ({ kind: 'device', publicId })
const gate = (reason: string) => ({ kind: 'gate', reason })
const without = (harness: string, message: string | null = null) => ({ unready: new Map([[harness, message]]) })

describe('which device a run goes to', () => {
  it('prefers the folder, then the session, then the default device, then the emptiest of the owner', () => {
    const devices = [
      device(idFrom('a'), { used: 2, isOfAdmin: true }),
      device(idFrom('b')),
      device(idFrom('c'), { personUuid: idFrom('you') }),
    ]
    expect(place(run(), devices)).toEqual(on('b'))
    expect(place(run(), devices, idFrom<DeviceRef>('a'))).toEqual(on('a'))
    expect(place(run({ isOfPrivateAgent: true, isConfidential: true }), devices, idFrom<DeviceRef>('a'))).toEqual(
      on('b'),
    )
    expect(place(run({ sessionDevice: idFrom<DeviceRef>('a') }), devices, idFrom<DeviceRef>('b'))).toEqual(on('a'))
    expect(place(run({ folderDevice: idFrom<DeviceRef>('c') }), devices, idFrom<DeviceRef>('a'))).toEqual(on('c'))
  })

  it('takes nothing but the device with the session for a run that is of use only there', () => {
    const devices = [device(idFrom('a')), device(idFrom('b'))]
    const forSession = run({ isForSession: true, sessionDevice: idFrom<DeviceRef>('b') })
    expect(place(forSession, devices, idFrom<DeviceRef>('a'))).toEqual(on('b'))
    expect(place(forSession, devices.slice(0, 1))).toEqual(gate('no_device'))
    expect(place({ ...forSession, folderDevice: idFrom<DeviceRef>('a') }, devices)).toEqual(gate('no_device'))
    expect(place(forSession, [device(idFrom('b'), { personUuid: idFrom('you') })])).toEqual(gate('no_device'))
  })

  it('skips a device that lost its link, but waits for the one with the session', () => {
    const devices = [device(idFrom('a'), { isLinked: false }), device(idFrom('b'), { used: 2 })]
    expect(place(run(), devices, idFrom<DeviceRef>('a'))).toEqual(on('b'))
    expect(place(run({ sessionDevice: idFrom<DeviceRef>('a') }), devices)).toEqual(on('a'))
    // The run waits for its only device, and nothing gates it.
    expect(place(run(), [device(idFrom('a'), { isLinked: false })])).toEqual(on('a'))
  })

  it('takes a default device of somebody else, but no other device of theirs', () => {
    expect(place(run(), [device(idFrom('c'), { personUuid: idFrom('you') })])).toEqual(gate('no_device'))
    expect(
      place(run(), [device(idFrom('c'), { personUuid: idFrom('you'), isOfAdmin: true })], idFrom<DeviceRef>('c')),
    ).toEqual(on('c'))
    // The device's owner is no admin any more.
    expect(place(run(), [device(idFrom('c'), { personUuid: idFrom('you') })], idFrom<DeviceRef>('c'))).toEqual(
      gate('no_device'),
    )
  })

  it('brings what is private or given secrets to devices of the owner and of admins alone', () => {
    const secret = run({ isConfidential: true, folderDevice: idFrom<DeviceRef>('c') })
    expect(place(secret, [device(idFrom('c'), { personUuid: idFrom('you') })])).toEqual(gate('governance_refused'))
    expect(place({ ...secret, isConfidential: false }, [device(idFrom('c'), { personUuid: idFrom('you') })])).toEqual(
      on('c'),
    )
    expect(place(secret, [device(idFrom('c'), { personUuid: idFrom('you'), isOfAdmin: true })])).toEqual(on('c'))
    expect(place(secret, [device(idFrom('c'))])).toEqual(on('c'))
  })

  it('waits for the device of the folder and no other', () => {
    const devices = [device(idFrom('a'), { liveness: 'disconnected' }), device(idFrom('b'))]
    expect(place(run({ folderDevice: idFrom<DeviceRef>('a') }), devices)).toEqual(gate('no_device'))
    expect(place(run({ folderDevice: idFrom<DeviceRef>('gone') }), devices)).toEqual(gate('no_device'))
  })

  it('goes only where the harness is ready', () => {
    const devices = [device(idFrom('a'), without('claude')), device(idFrom('b'), { used: 2 })]
    expect(place(run(), devices, idFrom<DeviceRef>('a'))).toEqual(on('b'))
    expect(place(run({ harness: 'codex' }), devices, idFrom<DeviceRef>('a'))).toEqual(on('a'))
    expect(place(run(), devices.slice(0, 1))).toMatchObject(gate('no_ready_route'))
    expect(place(run({ folderDevice: idFrom<DeviceRef>('a') }), devices)).toMatchObject(gate('pinned_route_not_ready'))
  })

  describe('says why it waits for a harness', () => {
    const told = (devices: DeviceFacts[], changes: Partial<RunFacts> = {}) => {
      const placement = place(run(changes), devices)
      return placement.kind === 'gate' ? describeGate(placement, 'claude') : null
    }
    const old = 'claude 1.0.0 is too old: svc needs 2.0.0 or newer; update it with: claude update'

    it('with the sentence of the device', () => {
      const devices = [
        device(idFrom('a'), without('claude', old)),
        device(idFrom('b'), { ...without('claude', old), personUuid: idFrom('you') }),
      ]
      expect(told(devices)).toContain(`machine a: ${old}`)
      expect(told(devices, { folderDevice: idFrom<DeviceRef>('b') })).toMatch(
        /^The device of the folder is not ready.*machine b: claude 1/,
      )
    })

    it('with each sentence once, and no more of them than can be read', () => {
      const same = ['a', 'b', 'c', 'd', 'e'].map((id) => device(idFrom(id), without('claude', old)))
      expect(told(same)?.match(/is too old/g)).toHaveLength(1)
      expect(told(same)).toContain(`machine a, machine b, machine c and 2 more: ${old}`)
      const many = ['a', 'b', 'c', 'd', 'e'].map((id) => device(idFrom(id), without('claude', `No. ${id}`)))
      expect(told(many)).toMatch(/machine a: No\. a \| machine b: No\. b \| machine c: No\. c$/)
    })

    it('on one line, whatever the device says', () => {
      const lying = device(idFrom('a'), without('claude', `x\u001b[2J\nrun: \u202E${'y'.repeat(2_000)}`))
      expect(told([lying])).not.toMatch(/[\p{Cc}\u202E]/u)
      expect(told([lying])!.length).toBeLessThan(800)
    })

    it('and names the command that tells more where the device says nothing', () => {
      for (const message of [null, '', ' \n'])
        expect(told([device(idFrom('a'), without('claude', message))])).toContain('`svc device status`')
    })
  })

  it('leaves a provider alone that limited the agent a moment ago', () => {
    const facts = {
      ...nothing,
      devices: [device(idFrom('a'))],
      defaultDevice: null,
      rateLimited: new Set(['agt_1/claude']),
    }
    expect(placeRun(run(), facts)).toEqual(gate('rate_limit'))
    expect(placeRun(run({ harness: 'codex' }), facts)).toEqual(on('a'))
    expect(placeRun(run({ agentRef: idFrom('agt_2') }), facts)).toEqual(on('a'))
  })

  it('goes on its fallback harness where a limit keeps it from its own, and only if it may begin at once', () => {
    const limited = { ...nothing, defaultDevice: null, rateLimited: new Set(['agt_1/claude']) }
    const devices = [device(idFrom('a')), device(idFrom('b'), { used: 1 })]
    const withFallback = run({
      fallback: { harness: 'codex', keyId: null, provider: 'codex' },
      sessionDevice: idFrom<DeviceRef>('b'),
    })
    expect(placeRun(withFallback, { ...limited, devices })).toEqual({ ...on('a'), onFallback: true })
    expect(placeRun(withFallback, { ...nothing, defaultDevice: null, devices })).toEqual(on('b'))
    const quotas = new Map(devices.map(({ publicId }) => [`claude/${publicId}`, { room: 0, opensAt: 5 }]))
    expect(placeRun(withFallback, { ...nothing, defaultDevice: null, devices, quotas })).toMatchObject({
      onFallback: true,
    })
    // A run that is kept from both is told what keeps it from its own.
    const unready = devices.map((each) => ({ ...each, ...without('codex') }))
    expect(placeRun(withFallback, { ...limited, devices: unready })).toEqual(gate('rate_limit'))
    const spent = new Map([...quotas, ['codex/a', { room: 0, opensAt: 9 }], ['codex/b', { room: 0, opensAt: 9 }]])
    const held = { ...gate('rate_limit'), opensAt: 5 }
    expect(placeRun(withFallback, { ...nothing, defaultDevice: null, devices, quotas: spent })).toEqual(held)
    // Other gates do not send the run to its fallback.
    const absent = devices.map((each) => ({ ...each, ...without('claude') }))
    expect(place(withFallback, absent)).toMatchObject(gate('no_ready_route'))
  })

  it('waits where the provider failed on every device, tries one run of it, and takes its fallback meanwhile', () => {
    const devices = [device(idFrom('a')), device(idFrom('b'), { used: 1 })]
    const open = (...names: string[]) =>
      new Map(names.map((name, i) => [`${name}/claude`, { room: 0, opensAt: 5 + i }]))
    const at = (circuits: Map<string, Quota>) => ({ ...nothing, devices, defaultDevice: null, circuits })
    expect(placeRun(run(), at(open('a')))).toEqual(on('b'))
    expect(placeRun(run(), at(open('b', 'a')))).toEqual({ ...gate('provider_overloaded'), opensAt: 5 })
    expect(placeRun(run({ harness: 'codex', provider: 'codex' }), at(open('a', 'b')))).toEqual(on('a'))
    const fallback = { harness: 'codex', keyId: null, provider: 'codex' } as const
    expect(placeRun(run({ fallback }), at(open('a', 'b')))).toEqual({ ...on('a'), onFallback: true })
    const trial = { ...at(open('b')), circuits: new Map([...open('b'), ['a/claude', { room: 1, opensAt: 9 }]]) }
    const { placed, left } = placeAll([{ facts: run() }, { facts: run() }], trial)
    expect(placed.map(({ publicId }) => publicId)).toEqual(['a'])
    expect(placeRun(run(), left)).toEqual({ ...gate('provider_overloaded'), opensAt: 5 })
  })

  it('counts a run on its fallback harness for the account of that one', () => {
    const quotas = new Map([
      ['claude/a', { room: 0, opensAt: 5 }],
      ['codex/a', { room: 1, opensAt: 9 }],
    ])
    const facts = { ...nothing, devices: [device(idFrom('a'))], defaultDevice: null, quotas }
    const runs = [1, 2].map((id) => ({
      id,
      facts: run({ fallback: { harness: 'codex', keyId: null, provider: 'codex' } }),
    }))
    const { placed } = placeAll(runs, facts)
    expect(placed.map(({ run: { id }, onFallback }) => [id, onFallback])).toEqual([[1, true]])
  })

  it('goes only where the device takes wakes of whoever caused it', () => {
    const ofOwner = [device(idFrom('a'), { runsBy: 'owner' })]
    const ofAdmins = [device(idFrom('a'), { runsBy: 'admins' })]
    const refused = gate('governance_refused')
    for (const causedByUuid of ['me', 'boss', 'you', null]) {
      expect(place(run({ causedByUuid: idFrom<PersonUuid>(causedByUuid) }), [device(idFrom('a'))])).toEqual(on('a'))
      expect([causedByUuid, place(run({ causedByUuid: idFrom<PersonUuid>(causedByUuid) }), ofOwner)]).toEqual([
        causedByUuid,
        causedByUuid === 'me' ? on('a') : refused,
      ])
      const isTaken = causedByUuid === 'me' || causedByUuid === 'boss'
      expect([causedByUuid, place(run({ causedByUuid: idFrom<PersonUuid>(causedByUuid) }), ofAdmins)]).toEqual([
        causedByUuid,
        isTaken ? on('a') : refused,
      ])
    }
    // A run goes as well to another device that takes it; a run of the folder has no other.
    const devices = [device(idFrom('a'), { runsBy: 'owner' }), device(idFrom('b'), { used: 2 })]
    expect(place(run({ causedByUuid: idFrom<PersonUuid>('you') }), devices)).toEqual(on('b'))
    expect(
      place(run({ causedByUuid: idFrom<PersonUuid>('you'), folderDevice: idFrom<DeviceRef>('a') }), devices),
    ).toEqual(refused)
  })

  it('goes only where the device takes the words that it follows and the program that it runs', () => {
    const refused = gate('governance_refused')
    const ofAdmins = [device(idFrom('a'), { runsBy: 'admins' })]
    for (const wordsBy of [['boss'], ['you'], [null], ['boss', 'you']].map((names) =>
      names.map((name) => idFrom<PersonUuid>(name)),
    )) {
      expect(place(run({ wordsBy }), [device(idFrom('a'))])).toEqual(on('a'))
      expect(place(run({ wordsBy }), [device(idFrom('a'), { runsBy: 'owner' })])).toEqual(refused)
      const isTaken = wordsBy.every((person) => person === 'boss')
      expect([wordsBy, place(run({ wordsBy }), ofAdmins)]).toEqual([wordsBy, isTaken ? on('a') : refused])
    }
    const inFolder = run({ folderDevice: idFrom<DeviceRef>('a') })
    for (const ownerUserId of ['you', null])
      for (const runsBy of ['owner', 'admins'] as const)
        expect(
          place({ ...inFolder, ownerUuid: idFrom<PersonUuid>(ownerUserId) }, [device(idFrom('a'), { runsBy })]),
        ).toEqual(refused)
    expect(place({ ...inFolder, ownerUuid: idFrom<PersonUuid>('boss') }, ofAdmins)).toEqual(on('a'))
  })

  it('is held up by what waits before it on its task, but not by what no device may take', () => {
    const devices = [device(idFrom('a'), { runsBy: 'owner' })]
    const refused = run({ causedByUuid: idFrom<PersonUuid>('you') })
    expect(place(run({ ahead: [refused, refused] }), devices)).toEqual(on('a'))
    expect(place(run({ ahead: [refused, run()] }), devices)).toEqual(gate('task_locked'))
    // A run that waits for a device to come back may go first when it does.
    const pinned = run({ folderDevice: idFrom<DeviceRef>('gone') })
    expect(place(run({ ahead: [pinned] }), devices)).toEqual(gate('task_locked'))
  })

  it('keeps an agent that was given away off the devices of an owner who has not agreed', () => {
    const asked = run({ isOwnerAsked: true })
    expect(place(asked, [device(idFrom('a'))])).toEqual(gate('governance_refused'))
    expect(place({ ...asked, folderDevice: idFrom<DeviceRef>('a') }, [device(idFrom('a'))])).toEqual(
      gate('governance_refused'),
    )
    expect(
      place(
        asked,
        [device(idFrom('a')), device(idFrom('c'), { personUuid: idFrom('you'), isOfAdmin: true })],
        idFrom<DeviceRef>('c'),
      ),
    ).toEqual(on('c'))
  })

  it('waits while another run works on the task', () => {
    expect(place(run({ waitsForOtherRun: true }), [device(idFrom('a'))])).toEqual(gate('task_locked'))
  })

  it('waits where the account of every device has reached its limit, and is told until when', () => {
    const devices = [device(idFrom('a')), device(idFrom('b'), { used: 1 })]
    const facts = (quotas: [string, Quota][]) => ({
      ...nothing,
      devices,
      defaultDevice: null,
      quotas: new Map(quotas),
    })
    const closed = (opensAt: number): Quota => ({ room: 0, opensAt })
    expect(placeRun(run(), facts([['claude/a', closed(5)]]))).toEqual(on('b'))
    const both: [string, Quota][] = [
      ['claude/a', closed(5)],
      ['claude/b', closed(3)],
    ]
    expect(placeRun(run(), facts(both))).toEqual({ ...gate('rate_limit'), opensAt: 3 })
    expect(placeRun(run({ harness: 'codex' }), facts(both))).toEqual(on('a'))
    expect(placeRun(run({ folderDevice: idFrom<DeviceRef>('a') }), facts(both))).toEqual({
      ...gate('rate_limit'),
      opensAt: 5,
    })
    // A device that is away meanwhile does not make the wait shorter.
    devices[0]!.liveness = 'disconnected'
    expect(placeRun(run({ folderDevice: idFrom<DeviceRef>('a') }), facts(both))).toEqual({
      ...gate('no_device'),
      opensAt: 5,
    })
  })

  it('counts a full or refusing device as capacity, an unusable one as none', () => {
    expect(place(run(), [device(idFrom('a'), { used: 3 })])).toEqual(gate('capacity'))
    expect(place(run(), [device(idFrom('a'), { accepting: false })])).toEqual(gate('capacity'))
    for (const unusable of [{ remoteControlRevoked: true }, { isController: true }, { liveness: 'retired' as const }])
      expect(place(run(), [device(idFrom('a'), unusable)])).toEqual(gate('no_device'))
  })
})

describe('an account that opens again', () => {
  const window = { resetsAt: 1_000_000, capacity: 3, live: 0 }

  it('opens one place at once and the others over a minute', () => {
    expect(quotaAt(999_999, window)).toEqual({ room: 0, opensAt: 1_000_000 })
    expect(quotaAt(1_000_000, window).room).toBe(1)
    expect(quotaAt(1_000_000, { ...window, live: 1 })).toEqual({ room: 0, opensAt: 1_020_000 })
    expect(quotaAt(1_019_999, { ...window, live: 1 }).room).toBe(0)
    expect(quotaAt(1_020_000, { ...window, live: 1 }).room).toBe(1)
    expect(quotaAt(1_040_000, { ...window, live: 2 }).room).toBe(1)
    // Runs that were at work when the limit was reached are counted as well.
    expect(quotaAt(1_000_000, { ...window, live: 3 })).toEqual({ room: 0, opensAt: 1_060_000 })
  })

  it('is one for all devices of a person, and takes no more than its room', () => {
    const accounts = { claude: 'd' }
    const devices = [device(idFrom('a'), { accounts }), device(idFrom('b'), { accounts })]
    const facts = {
      ...nothing,
      devices,
      defaultDevice: null,
      quotas: new Map<string, Quota>([['claude/me/d', { room: 1, opensAt: 9 }]]),
    }
    const { placed } = placeAll([{ facts: run() }, { facts: run() }, { facts: run({ harness: 'codex' }) }], facts)
    expect(placed.map(({ run: each }) => each.facts.harness)).toEqual(['claude', 'codex'])
    expect(facts.quotas.get('claude/me/d')?.room).toBe(1)
    // Somebody else's device reports the same account.
    const others = [device(idFrom('a'), { personUuid: idFrom('you'), accounts })]
    expect(placeRun(run({ folderDevice: idFrom<DeviceRef>('a') }), { ...facts, devices: others })).toEqual(on('a'))
    // An agent that brings its own key waits for that one alone.
    const keys = new Map([...facts.quotas, ['claude/me/sec_2', { room: 0, opensAt: 9 }] as const])
    const closed = { ...facts, quotas: new Map([...keys, ['claude/me/d', { room: 0, opensAt: 9 }] as const]) }
    expect(placeRun(run({ keyId: idFrom<SecretId>('sec_1') }), closed)).toEqual(on('a'))
    expect(placeRun(run({ keyId: idFrom<SecretId>('sec_2') }), closed)).toEqual({ ...gate('rate_limit'), opensAt: 9 })
    expect(
      placeRun(run({ keyId: idFrom<SecretId>('sec_2'), folderDevice: idFrom<DeviceRef>('a') }), {
        ...closed,
        devices: others,
      }),
    ).toEqual(on('a'))
  })
})

describe('where several runs go', () => {
  it('gives each run the room that those before it left, and skips runs that a gate holds', () => {
    const devices = [device(idFrom('a'), { capacity: 2, used: 1 }), device(idFrom('b'), { capacity: 1 })]
    const facts = { ...nothing, devices, defaultDevice: idFrom<DeviceRef>('a') }
    const runs = [{}, { waitsForOtherRun: true }, {}, {}, { folderDevice: idFrom<DeviceRef>('b') }].map((changes) => ({
      facts: run(changes),
    }))
    const { placed, left } = placeAll(runs, facts)
    expect(placed).toEqual([
      { run: runs[0], publicId: 'a' },
      { run: runs[2], publicId: 'b' },
    ])
    expect(left.devices.map(({ used }) => used)).toEqual([2, 1])
    expect(devices.map(({ used }) => used)).toEqual([1, 0])
  })
})
