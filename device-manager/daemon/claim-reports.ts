import type { ClaimState, DeviceMessage } from '../../shared/device/protocol.ts'
import type { World } from '../../shared/lib/world.ts'

export interface ClaimReportsOptions {
  world: Pick<World, 'after'>
  claimState(): ClaimState
  send(message: DeviceMessage): boolean
}

/** The interval at which a disk that takes nothing is looked at: nobody tells when it has room again. */
const diskLookMs = 2_000

/** Tells the control plane whether runs are taken: a change at once, not with the next heartbeat. */
export class ClaimReports {
  private readonly options: ClaimReportsOptions
  private last = ''
  private cancelLook: (() => void) | null = null

  constructor(options: ClaimReportsOptions) {
    this.options = options
  }

  report(): void {
    const claimState = this.options.claimState()
    if (claimState.reason === 'disk_full' || claimState.reason === 'spool_unavailable') this.lookAgain()
    const key = `${claimState.accepting} ${claimState.reason}`
    if (key === this.last) return
    if (this.options.send({ type: 'heartbeat', claimState })) this.last = key
  }

  /** Tells it even if it was told last. */
  tell(): void {
    this.last = ''
    this.report()
  }

  stop(): void {
    this.cancelLook?.()
    this.cancelLook = null
  }

  private lookAgain(): void {
    this.cancelLook ??= this.options.world.after(diskLookMs, () => {
      this.cancelLook = null
      this.report()
    })
  }
}
