import type { Socket } from 'node:net'
import type { World } from '../../../shared/lib/world.ts'
import { networkLimits, otherHosts, type NetworkDecision } from '../../../shared/runs/network.ts'
import { isHostName } from '../../outbound/host-name.ts'
import type { NetworkRow } from '../../resources/sandboxes/network-store.ts'
import { isIP } from 'node:net'

type Counted = Omit<NetworkRow, 'runId'>

export interface LedgerOptions {
  world: World
  /** Writes down what was counted. */
  record(counted: readonly Counted[]): Promise<void>
}

const writeMs = 1_000

/** Counts what a sandbox asks for, and has it written down at most once a second. What a server that dies had counted since is lost. */
export class Ledger {
  private readonly options: LedgerOptions
  private counted = new Map<string, Counted>()
  private readonly marks = new WeakMap<Socket, { read: number; written: number }>()
  private cancel: (() => void) | null = null
  private writing: Promise<void> = Promise.resolve()

  constructor(options: LedgerOptions) {
    this.options = options
  }

  /** Counts a request, with the bytes that went through its connection since the last one of it. */
  count(
    said: string,
    decision: NetworkDecision,
    { socket, requests = 1 }: { socket: Socket; requests?: number },
  ): void {
    const { sent, received } = this.since(socket)
    const host = this.shown(said, decision)
    const at = this.options.world.now()
    const key = `${host} ${decision}`
    const row = this.counted.get(key) ?? {
      host,
      decision,
      requests: 0,
      bytesSent: 0,
      bytesReceived: 0,
      firstAt: at,
      lastAt: at,
    }
    row.requests += requests
    row.bytesSent += sent
    row.bytesReceived += received
    row.lastAt = at
    this.counted.set(key, row)
    this.cancel ??= this.options.world.after(writeMs, () => {
      this.cancel = null
      void this.write()
    })
  }

  /** Resolves when all that was counted is written down, or could not be. */
  write(): Promise<void> {
    this.cancel?.()
    this.cancel = null
    const rows = [...this.counted.values()]
    this.counted = new Map()
    if (rows.length > 0) this.writing = this.writing.then(() => this.options.record(rows))
    return this.writing
  }

  private since(socket: Socket): { sent: number; received: number } {
    const { read, written } = this.marks.get(socket) ?? { read: 0, written: 0 }
    const [bytesRead, bytesWritten] = [socket.bytesRead, socket.bytesWritten ?? 0]
    this.marks.set(socket, { read: bytesRead, written: bytesWritten })
    return { sent: Math.max(0, bytesRead - read), received: Math.max(0, bytesWritten - written) }
  }

  /** Names that a sandbox makes up take no more room than others. */
  private shown(said: string, decision: NetworkDecision): string {
    if (said !== otherHosts.server && isIP(said) === 0 && !isHostName(said)) return otherHosts.unreadable
    const isRoom = this.counted.size < networkLimits.hosts || this.counted.has(`${said} ${decision}`)
    return isRoom ? said : otherHosts.further
  }
}
