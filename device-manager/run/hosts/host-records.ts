import { mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Places } from '../../setup/places.ts'
import { bootId, isAlive } from '../../process/identity.ts'
import { hostRecord, type HostRecord } from '../../run-host/wire/protocol.ts'

/**
 * Reads what run hosts wrote of themselves, one file each (`hosts/<hostId>.json`). A host writes it durably before it takes a run
 * and removes it as the last thing when it leaves in order. So a record without its process is of a host that died, and no
 * record at all is of one that left: it had stored its run's ending, or had launched nothing.
 */
export class HostRecords {
  private readonly folder: string
  private readonly stateDir: string
  /** The id of this boot, read once: it stays while this process lives, and cannot be read when no file is left. */
  private readonly boot = bootId()

  constructor({ hosts, stateDir }: Pick<Places, 'hosts' | 'stateDir'>) {
    this.folder = hosts
    this.stateDir = stateDir
  }

  list(): HostRecord[] {
    mkdirSync(this.folder, { recursive: true, mode: 0o700 })
    const names = readdirSync(this.folder).filter((name) => name.endsWith('.json'))
    return names.flatMap((name) => this.find(name.slice(0, -'.json'.length)) ?? [])
  }

  /** Returns the last record of the host, or null when there is none that can be read. */
  find(hostId: string): HostRecord | null {
    try {
      const parsed = hostRecord.safeParse(JSON.parse(readFileSync(this.path(hostId), 'utf8')))
      return parsed.success ? parsed.data : null
    } catch {
      return null
    }
  }

  /** Returns true where that is certain; a folder that cannot be looked into tells nothing. */
  hasLeftInOrder(hostId: string): boolean {
    try {
      return statSync(this.path(hostId), { throwIfNoEntry: false }) === undefined && statSync(this.folder).isDirectory()
    } catch {
      return false
    }
  }

  /** Throws when the system cannot tell. */
  isAlive(record: HostRecord): boolean {
    return !this.isOfEarlierBoot(record) && isAlive(record)
  }

  /** The machine was started anew since. */
  isOfEarlierBoot(record: HostRecord): boolean {
    return record.bootId !== this.boot
  }

  /** Returns the folder whose host this is, when that is another one that exists: this one is a copy of it. */
  originalOf(record: HostRecord): string | null {
    const other = record.stateDir ?? dirname(dirname(record.socket))
    try {
      const [its, ours] = [statSync(other), statSync(this.stateDir)]
      // A host of the first release that has its socket elsewhere says nothing.
      const isKnown = record.stateDir !== undefined || record.socket.startsWith(join(other, 'hosts'))
      return isKnown && (its.ino !== ours.ino || its.dev !== ours.dev) ? other : null
    } catch {
      return null
    }
  }

  remove(record: HostRecord): void {
    rmSync(this.path(record.hostId), { force: true })
    if (dirname(record.socket) === this.folder) rmSync(record.socket, { force: true })
  }

  private path(hostId: string): string {
    return join(this.folder, `${hostId}.json`)
  }
}
