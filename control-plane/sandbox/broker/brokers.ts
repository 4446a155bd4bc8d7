import { idFrom, type SandboxId } from '../../../shared/lib/ids.ts'
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import type { Server } from 'node:http'
import { connect } from 'node:net'
import { dirname, join } from 'node:path'
import type { SandboxIdentity, WaitingSandbox } from '../../../shared/device/sandbox.ts'
import { sandboxPlaces } from '../../../shared/runs/sandbox-places.ts'
import type { Log } from '../../process/log.ts'
import { Broker, type BrokerOptions } from './broker.ts'

export interface BrokersOptions extends Pick<BrokerOptions, 'world' | 'outbound'> {
  /** The server to whose API sandboxes come. */
  http: Server
  log: Log
  /** Finds what the run of a sandbox may reach; null: nothing any more. */
  permitOf(sandboxId: SandboxId): ReturnType<BrokerOptions['permit']>
  /** Writes down what a sandbox asked for. */
  recordOf(sandboxId: SandboxId, counted: Parameters<BrokerOptions['record']>[0]): Promise<void>
}

export interface FolderBrokersOptions extends BrokersOptions {
  /** The folder in which each sandbox has one of its own; only this server's account may enter it. */
  folder: string
}

/** A sandbox, and the folder with the socket of its broker. */
export interface BrokerPlace {
  id: SandboxId
  folder: string | null
}

export interface KnownPlace extends BrokerPlace {
  folder: string
}

export type BrokerRoute = Pick<SandboxIdentity, 'network' | 'hostFolder' | 'broker'>

/** The places at which the sandboxes of a server find their brokers. */
export interface BrokerPlaces {
  /** The folder of all places. */
  readonly folder: string
  /** Names the place of a sandbox's broker for all replicas, where this one makes it. */
  folderOf(sandboxId: SandboxId): string
  /** The folder that is noted for a sandbox, as another replica may have made it, where this server reaches it; else `folderOf`. */
  reachableFolderOf(place: BrokerPlace): string
  /** Returns what a sandbox must know of the way to its broker. */
  routeOf(place: KnownPlace): Promise<BrokerRoute>
  /** Starts the places. Called once, before all else. */
  start(): Promise<void>
  /** Makes the place of a sandbox that waits for its run. No broker listens there yet. */
  standBy(sandboxId: SandboxId, waiting: WaitingSandbox): Promise<void>
  open(place: KnownPlace, identity: SandboxIdentity): Promise<void>
  forgetToken(place: BrokerPlace): void
  keep(places: readonly BrokerPlace[]): Promise<void>
  /** The sandboxes that have a place here. */
  known(): SandboxId[]
  close(place: BrokerPlace): Promise<void>
  stop(): Promise<void>
}

export const brokerOf = (options: BrokersOptions, sandboxId: SandboxId): Broker =>
  new Broker({
    ...options,
    sandboxId,
    permit: () => options.permitOf(sandboxId),
    record: (counted) => options.recordOf(sandboxId, counted),
  })

/** A file that is being written. */
const unfinished = '.new'
/** Sockets are tried this often at most. */
const keepMs = 2_000
/** The longest path, in bytes, at which Linux makes a socket. */
const longestPath = 107

/** The brokers of the sandboxes whose folders are on this machine. */
export class FolderBrokers implements BrokerPlaces {
  readonly folder: string
  private readonly options: FolderBrokersOptions
  private readonly brokers = new Map<SandboxId, Broker>()
  private keptAt = Number.NEGATIVE_INFINITY

  constructor(options: FolderBrokersOptions) {
    this.options = options
    this.folder = options.folder
  }

  /** Returns why no broker could listen in a folder below this one; null: one can. */
  static troubleOf(folder: string): string | null {
    const bytes = Buffer.byteLength(join(folder, 'sbx_0123456789abcdef', sandboxPlaces.socket))
    if (bytes <= longestPath) return null
    return `${folder} is too long a path for the sockets of sandboxes. Name a shorter data folder by SVC_DATA_DIR.`
  }

  folderOf(sandboxId: SandboxId): string {
    return join(this.folder, sandboxId)
  }

  /** Replicas of one account on one machine reach each other's folders; those in containers of their own do not. */
  reachableFolderOf({ id, folder }: BrokerPlace): string {
    return folder !== null && isWritable(dirname(folder)) ? folder : this.folderOf(id)
  }

  async start(): Promise<void> {}

  /** Leads the sandbox to the broker's socket. */
  async routeOf({ folder }: KnownPlace): Promise<BrokerRoute> {
    return { network: 'none', hostFolder: folder }
  }

  known(): SandboxId[] {
    return existsSync(this.folder) ? readdirSync(this.folder).map((name) => idFrom(name)) : []
  }

  async standBy(id: SandboxId, waiting: WaitingSandbox): Promise<void> {
    write(this.folderOf(id), sandboxPlaces.waiting, waiting)
  }

  /** Listens for a sandbox, and writes down who it is: one that waits for it says hello at once. Done again, it changes nothing. */
  async open({ id, folder }: KnownPlace, identity: SandboxIdentity): Promise<void> {
    makeFolder(folder)
    if (!(await isHeard(join(folder, sandboxPlaces.socket)))) await this.listen(id, folder)
    write(folder, sandboxPlaces.identity, identity)
    // A container that is started again must see that it has had a run.
    rmSync(join(folder, sandboxPlaces.waiting), { force: true })
  }

  /** Takes away the token that was used. */
  forgetToken({ folder }: BrokerPlace): void {
    if (folder === null) return
    for (const name of [sandboxPlaces.identity, `${sandboxPlaces.identity}${unfinished}`, sandboxPlaces.waiting])
      rmSync(join(folder, name), { force: true })
  }

  /**
   * Listens for the sandboxes whose broker was that of a server that is gone. What counts is whether somebody is heard at the socket: a broker
   * of this server is not, where another one took its place and left.
   */
  async keep(places: readonly BrokerPlace[]): Promise<void> {
    const now = this.options.world.monotonic()
    if (now - this.keptAt < keepMs) return
    this.keptAt = now
    for (const { id, folder } of places) {
      if (folder === null || !existsSync(folder) || (await isHeard(join(folder, sandboxPlaces.socket)))) continue
      this.options.log.info({ sandbox: id }, 'the broker of a sandbox is taken over')
      await this.listen(id, folder)
    }
  }

  async close({ id, folder }: BrokerPlace): Promise<void> {
    await this.brokers.get(id)?.close()
    this.brokers.delete(id)
    rmSync(folder ?? this.folderOf(id), { recursive: true, force: true })
  }

  async stop(): Promise<void> {
    await Promise.all([...this.brokers.values()].map((broker) => broker.close()))
    this.brokers.clear()
  }

  /** Has one broker listen for the sandbox, in this folder: another one, or one whose socket is gone, is closed. */
  private async listen(id: SandboxId, folder: string): Promise<void> {
    await this.brokers.get(id)?.close()
    const broker = brokerOf(this.options, id)
    this.brokers.set(id, broker)
    try {
      await broker.listen(join(folder, sandboxPlaces.socket))
    } catch (error) {
      this.brokers.delete(id)
      throw error
    }
  }
}

/** The account in the sandbox is another one. Nobody else of this machine comes as far as this folder. */
function makeFolder(folder: string): void {
  mkdirSync(dirname(folder), { recursive: true, mode: 0o700 })
  mkdirSync(folder, { recursive: true })
  chmodSync(folder, 0o755)
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** Writes a file by a rename: the sandbox never reads a part of it. */
function write(folder: string, name: string, content: object): void {
  makeFolder(folder)
  const file = join(folder, name)
  writeFileSync(`${file}${unfinished}`, JSON.stringify(content))
  chmodSync(`${file}${unfinished}`, 0o644)
  renameSync(`${file}${unfinished}`, file)
}

/** Tells whether somebody listens at the socket. */
function isHeard(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    const asked = connect(socket)
    asked.once('connect', () => {
      asked.destroy()
      resolve(true)
    })
    asked.once('error', () => resolve(false))
  })
}
