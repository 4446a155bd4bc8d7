import type { RunId, SandboxId, WorkspaceUuid } from '../../shared/lib/ids.ts'
import type { SandboxIdentity } from '../../shared/device/sandbox.ts'
import type { SandboxSize } from '../../shared/api/agents.ts'

/**
 * Runs containers, behind one small interface. Every call has a time limit, and may be made again: a container that is there already is
 * taken over by its name, and one that is gone counts as removed.
 */
export interface SandboxEngine {
  readonly kind: 'docker' | 'kubernetes'
  /** The id by which the engine names itself: servers that share a database may share it. Throws when it is out of reach. */
  identify(): Promise<EngineFacts>
  /** The image as it is now, by its id; null: the engine has none of this name. */
  findImage(name: string): Promise<string | null>
  /** Resolves with what the engine cannot hold a container to, in sentences. Nothing is made. */
  findTroubles(spec: ContainerSpec): Promise<string[]>
  /** Resolves with the id of the container, which is not started. */
  create(spec: ContainerSpec): Promise<string>
  /** Creates a container with the volume of one that has ended, which may be there (`ended`: its id) or gone. Resolves like `create`. */
  createAgain(spec: ContainerSpec, ended: string | null): Promise<string>
  start(id: string): Promise<void>
  /** Ends it with SIGTERM, and after `graceMs` with SIGKILL. */
  stop(id: string, graceMs: number): Promise<void>
  /** The last lines of its output, at most `lines`. */
  logs(id: string, lines: number): Promise<string>
  /** Removes a container and a volume by their names; null: there is no volume that is to go. */
  remove(container: string, volume: string | null): Promise<void>
  removeVolume(name: string): Promise<void>
  /** Resolves with how the container ended; null: it is gone, or has not ended. */
  ending(id: string): Promise<ContainerEnding | null>
  /** Lists the containers of this server, whatever their state. */
  list(serverId: string): Promise<Container[]>
  /** The names of the volumes of this server. */
  listVolumes(serverId: string): Promise<string[]>
  /** Calls `hurry` when something happens to a container of this server, until the signal is aborted or the engine hangs up. */
  watch(serverId: string, hurry: () => void, signal: AbortSignal): Promise<void>
}

export interface EngineFacts {
  id: string
  /** Processors that it has. */
  cpus: number
}

export interface ContainerSpec {
  /** Unique on the engine; the same for one run and fence. */
  name: string
  /** The id of the image. */
  image: string
  serverId: string
  sandboxId: SandboxId
  /** The run of the container; null: it is made ahead, and has no run yet. */
  of: { workspaceId: WorkspaceUuid; runId: RunId } | null
  size: SizeLimits
  /** The name of the volume, which is made where there is none. */
  volume: string
  /** A folder of this machine that it reads: its token, and the socket of its broker. */
  brokerFolder: string
  /** The identity that the container reads; null: it waits in its folder to be told. */
  identity: SandboxIdentity | null
  /** The runtime of the engine, such as gVisor's; null: its usual one. */
  runtime: string | null
}

export interface Container {
  id: string
  name: string
  sandboxId: SandboxId
  /** `waiting`: it was started and does not run yet, for want of a place or of its image. */
  state: 'created' | 'waiting' | 'running' | 'exited'
}

export interface ContainerEnding {
  exitCode: number
  /** The kernel ended one of its processes for want of memory. */
  isOutOfMemory: boolean
}

export interface SizeLimits {
  memoryBytes: number
  cpus: number
  pids: number
  /** Engines hold nobody to it: the runner counts what is on the volume. */
  diskBytes: number
}

export type Sizes = Readonly<Record<SandboxSize, SizeLimits>>

/** The engine refuses more processors than it has. */
export const within = (size: SizeLimits, { cpus }: EngineFacts): SizeLimits => ({
  ...size,
  cpus: Math.min(size.cpus, cpus),
})

/** Describes a size for people: `small, 2 GiB`. */
export const describeSize = (size: SandboxSize, { memoryBytes }: SizeLimits): string =>
  `${size}, ${Number((memoryBytes / 1024 ** 3).toFixed(2))} GiB`

/** The engine is out of reach, refused, or answered what nobody understands. Its message is for people. */
export class EngineError extends Error {
  /** The engine understood and refused: asking again does not help. */
  readonly isRefusal: boolean

  constructor(message: string, { isRefusal = false, cause }: { isRefusal?: boolean; cause?: unknown } = {}) {
    super(message, { cause })
    this.isRefusal = isRefusal
  }
}
