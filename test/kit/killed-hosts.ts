/** The time by which the lines of the device's log may be late in their file on a busy machine, with the time that a kill takes. */
const logLagMs = 2_000

/**
 * Says whose the hosts were that a test killed. A host may be killed between being given a run and writing of itself whose it
 * is: then the log of the device says it, unless the daemon was killed a moment later, before its last lines were in the
 * file. Such a host counts for one run that was live when it was killed and that crashed, and for no other run.
 */
export class KilledHosts {
  private readonly hosts = new Map<string, { at: number; runId: string | null }>()
  private readonly daemons: number[] = []

  add({ hostId, runId }: { hostId: string; runId: string | null }): void {
    this.hosts.set(hostId, { at: Date.now(), runId })
  }

  addDaemon(): void {
    this.daemons.push(Date.now())
  }

  read(log: string): void {
    for (const [, runId, hostId] of log.matchAll(/^\{.*"runId":"(\w+)".*"hostId":"([\w-]+)".*\}$/gm)) {
      const host = this.hosts.get(hostId!)
      if (host) host.runId = runId!
    }
  }

  had(runId: string): boolean {
    return [...this.hosts.values()].some((host) => host.runId === runId)
  }

  mayHaveHad({ from, to }: { from: number; to: number }): boolean {
    for (const [hostId, { at, runId }] of this.hosts) {
      const isUntold = runId === null && this.daemons.some((daemonAt) => daemonAt >= at && daemonAt <= at + logLagMs)
      if (isUntold && at >= from && at <= to) return this.hosts.delete(hostId)
    }
    return false
  }

  get size(): number {
    return this.hosts.size
  }
}
