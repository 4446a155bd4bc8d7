/**
 * Limits connections that have not said hello, or whose sender is still being looked up. Anybody can open them, so
 * their number is limited in total and for each address; each holds little and is gone after some seconds.
 */
export interface WaitingLimits {
  inAll: number
  perAddress: number
}

/** A whole office may come back at once after a restart. */
export const waitingLimits: WaitingLimits = { inAll: 1_024, perAddress: 512 }

export class WaitingLinks {
  private readonly limits: WaitingLimits
  private readonly byAddress = new Map<string, number>()
  private count = 0

  constructor(limits: WaitingLimits = waitingLimits) {
    this.limits = limits
  }

  /** Returns a function to call once the link no longer waits; null when there are too many. */
  take(address: string): (() => void) | null {
    const here = this.byAddress.get(address) ?? 0
    if (this.count >= this.limits.inAll || here >= this.limits.perAddress) return null
    this.add(address, 1)
    let isWaiting = true
    return () => {
      if (isWaiting) this.add(address, -1)
      isWaiting = false
    }
  }

  private add(address: string, change: 1 | -1): void {
    this.count += change
    const here = (this.byAddress.get(address) ?? 0) + change
    if (here === 0) this.byAddress.delete(address)
    else this.byAddress.set(address, here)
  }
}
