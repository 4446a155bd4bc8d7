import type { Knex } from 'knex'
import type { DeviceUuid } from '../../shared/lib/ids.ts'
import type { DeviceMessage } from '../../shared/device/protocol.ts'
import type { World } from '../../shared/lib/world.ts'
import type { Dispatcher } from '../run/offers/dispatcher.ts'
import type { Log } from '../process/log.ts'
import { Together } from '../process/together.ts'
import { isReady } from '../resources/devices/readiness.ts'
import { recordClaimState, recordClaimStates, recordReadiness } from '../resources/devices/store.ts'
import { changeRun } from '../run/change-store.ts'
import { recordWall } from '../resources/runs/details-store.ts'
import { findRun } from '../resources/runs/store.ts'
import type { Link } from './registry.ts'

/** The delay before a run is offered again to a device that still ends an older lease of it. */
const runningAgainMs = 2_000

export interface DeviceStatesOptions {
  root: Knex
  world: Pick<World, 'after'>
  log: Log
  dispatcher: Dispatcher
}

/** States that are recorded at once. */
const mostStates = 500
type NewState = Pick<Link, 'deviceUuid' | 'claimState'>

/** Records what linked devices say of themselves: what they can run, whether they take runs, and which offer they do not take. */
export class DeviceStates {
  private readonly options: DeviceStatesOptions
  private readonly claimStates: Together<NewState, void>

  constructor(options: DeviceStatesOptions) {
    this.options = options
    this.claimStates = new Together({
      most: mostStates,
      all: (states) => this.recordClaimStates(states),
      onSplit: (error, count) =>
        options.log.warn({ err: error, devices: count }, 'claim states were not recorded together'),
    })
  }

  /** Records it, and looks again at runs that wait for a harness that can run now. */
  async readiness(link: Link, message: DeviceMessage & { type: 'readiness' }): Promise<void> {
    const { providerReadiness, capturedAt } = message
    await recordReadiness(this.options.root, link.deviceUuid, providerReadiness, capturedAt)
    const can = Object.entries(providerReadiness.harnesses).filter(([, state]) => isReady(state))
    // The account belongs to the state, since another account has limits of its own.
    const ready = can.map(([name, { account = '' }]) => `${name}:${account}`).join(' ')
    if (ready === link.ready) return
    link.ready = ready
    this.options.dispatcher.capacityChanged(link.workspaceId)
  }

  /** Records the start; without effect when another device says so. */
  async started(link: Link, message: DeviceMessage & { type: 'run.started' }): Promise<void> {
    const { runId, fence, harnessStartedAt: at } = message
    await changeRun(this.options.root, runId, { type: 'harness_started', fence, device: link.publicId, at })
  }

  /** A device is believed about the walls of runs that it holds. */
  async wall(link: Link, { runId, fence, acts }: DeviceMessage & { type: 'run.wall' }): Promise<void> {
    const { root } = this.options
    const run = await findRun(root, runId)
    if (run?.device === link.publicId && run.fence === fence && run.endedAt === null)
      await recordWall(root, runId, acts)
  }

  async declined(link: Link, message: DeviceMessage & { type: 'run.declined' }): Promise<void> {
    const { log, dispatcher, world } = this.options
    const offer = { runId: message.runId, fence: message.fence, device: link.publicId }
    log.info({ runId: message.runId, reason: message.reason, device: link.publicId }, 'run declined')
    if (message.reason === 'already_running') {
      // The device ends the processes of an older lease first, which takes seconds; offered at once it would decline
      // again and again.
      world.after(runningAgainMs, () => {
        dispatcher.withdraw(offer, message.reason).catch((error: unknown) => {
          log.error({ err: error, runId: message.runId }, 'a declined offer was not taken back; the sweep does it')
        })
      })
      return
    }
    // The device counts as accepting nothing until it reports otherwise, so that the same offer does not go round in
    // circles.
    const state = { ...link.claimState, accepting: false, message: message.message }
    await this.claimState(link, { ...state, reason: reasonOf(message.reason) })
    await this.recordClaimState(link)
    await dispatcher.withdraw(offer, message.reason)
  }

  /** Returns nothing when nothing changed. */
  claimState(link: Link, state: Link['claimState']): Promise<void> | void {
    const changed = state.accepting !== link.claimState.accepting || state.reason !== link.claimState.reason
    link.claimState = state
    if (changed) return this.claimStateChanged(link)
  }

  private async claimStateChanged(link: Link): Promise<void> {
    const state = link.claimState
    await this.recordClaimState(link)
    if (state.accepting) this.options.dispatcher.capacityChanged(link.workspaceId)
  }

  /** What devices say at one moment, such as after a stop of the server, is recorded together. */
  private recordClaimState({ deviceUuid, claimState }: Link): Promise<void> {
    return this.claimStates.add('', { deviceUuid, claimState })
  }

  private async recordClaimStates(states: readonly [NewState, ...NewState[]]): Promise<void[]> {
    const { root } = this.options
    // The last state that a device told is the one that it is in.
    const latest = new Map(states.map(({ deviceUuid, claimState }) => [deviceUuid, claimState]))
    const [[deviceUuid, claimState], ...others] = [...latest] as [[DeviceUuid, Link['claimState']]]
    await (others.length === 0 ? recordClaimState(root, deviceUuid, claimState) : recordClaimStates(root, latest))
    return states.map(() => undefined)
  }
}

function reasonOf(reason: (DeviceMessage & { type: 'run.declined' })['reason']): Link['claimState']['reason'] {
  return reason === 'draining' || reason === 'disk_full' || reason === 'spool_unavailable' ? reason : 'capacity'
}
