import { idFrom } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import { sandboxPlaces } from '../../../shared/runs/sandbox-places.ts'
import type { Container, ContainerEnding, ContainerSpec, EngineFacts, SandboxEngine } from '../engine.ts'
import { jsonOrUndefined } from '../engine-client.ts'
import { DockerClient, type DockerClientOptions } from './client.ts'
import { plainText } from './log-frames.ts'

const label = {
  server: 'svc.server',
  sandbox: 'svc.sandbox',
  workspace: 'svc.workspace',
  run: 'svc.run',
  /** The label of containers that are made ahead: the engine is not told of their runs. */
  warm: 'svc.warm',
} as const
const text = z.string().max(4_096)

const info = z.object({ ID: text.min(1), NCPU: z.number().int().positive() })
const ability = z.object({
  MemoryLimit: z.boolean().nullish(),
  SwapLimit: z.boolean().nullish(),
  CpuCfsQuota: z.boolean().nullish(),
  PidsLimit: z.boolean().nullish(),
  SecurityOptions: z.array(text).max(50).nullish(),
  Runtimes: z.record(text, z.unknown()).nullish(),
})
const image = z.object({ Id: text.regex(/^sha256:[0-9a-f]{64}$|^[0-9a-f]{64}$/) })
const created = z.object({ Id: text.regex(/^[0-9a-f]{12,64}$/) })
const inspected = z.object({
  State: z.object({ Running: z.boolean(), ExitCode: z.number().int(), OOMKilled: z.boolean() }),
})
const listed = z
  .array(
    z.object({
      Id: text.regex(/^[0-9a-f]{12,64}$/),
      Names: z.array(text).max(20),
      State: text,
      Labels: z.record(text, text),
    }),
  )
  .max(10_000)

const volumes = z.object({
  Volumes: z
    .array(z.object({ Name: text }))
    .max(10_000)
    .nullable(),
})

/** A container that is stopped is given longer by what it is stopped with. */
const stopSlackMs = 10_000
const logBytes = 64 * 1024

/** A Docker engine on this machine, or Podman by its compatible socket. */
export class DockerEngine implements SandboxEngine {
  readonly kind = 'docker'
  private readonly client: DockerClient
  private readonly timeoutMs: number

  constructor(options: DockerClientOptions) {
    this.client = new DockerClient(options)
    this.timeoutMs = options.timeoutMs
  }

  async identify(): Promise<EngineFacts> {
    const { ID, NCPU } = await this.client.read({ method: 'GET', path: '/info' }, info)
    return { id: ID, cpus: NCPU }
  }

  async findImage(name: string): Promise<string | null> {
    const path = `/images/${encodeURIComponent(name)}/json`
    if ((await this.client.call({ method: 'GET', path })).status === 404) return null
    return (await this.client.read({ method: 'GET', path }, image)).Id
  }

  async findTroubles({ runtime }: ContainerSpec): Promise<string[]> {
    const facts = await this.client.read({ method: 'GET', path: '/info' }, ability)
    const isKept = (option: string) => facts.SecurityOptions?.some((each) => each.startsWith(`name=${option}`)) === true
    return [
      facts.MemoryLimit === false ? 'It cannot limit memory.' : '',
      facts.SwapLimit === false
        ? 'It cannot keep a container from swapping: its memory is not limited to its size.'
        : '',
      facts.CpuCfsQuota === false ? 'It cannot limit processors.' : '',
      facts.PidsLimit === false ? 'It cannot limit the number of processes.' : '',
      isKept('seccomp') ? '' : 'It filters no system calls (seccomp).',
      runtime !== null && facts.Runtimes?.[runtime] === undefined ? `It has no runtime ${runtime}.` : '',
    ].filter((sentence) => sentence !== '')
  }

  async create(spec: ContainerSpec): Promise<string> {
    const { name } = spec
    const call = { method: 'POST', path: '/containers/create', query: { name }, body: containerOf(spec) } as const
    const { status } = await this.client.call({ method: 'GET', path: `/containers/${name}/json` })
    if (status === 404) {
      const reply = await this.client.call(call)
      // The container was made by somebody who was faster, and is the same.
      if (reply.status !== 409) {
        const parsed = created.safeParse(jsonOrUndefined(reply.body))
        if (reply.status === 201 && parsed.success) return parsed.data.Id
        throw this.client.refusal(call, reply)
      }
    }
    return (await this.client.read({ method: 'GET', path: `/containers/${name}/json` }, created)).Id
  }

  async createAgain(spec: ContainerSpec, ended: string | null): Promise<string> {
    return ended ?? this.create(spec)
  }

  async start(id: string): Promise<void> {
    const call = { method: 'POST', path: `/containers/${id}/start` } as const
    const reply = await this.client.call(call)
    if (reply.status === 204 || reply.status === 304) return
    const refusal = this.client.refusal(call, reply)
    // An engine that was killed while it started this one finds half of it, and never starts it: the next look makes another. It would
    // not remove one that runs.
    if (/\btask \S+: already exists/.test(refusal.message))
      await this.client.does({ method: 'DELETE', path: `/containers/${id}` }, [204, 404])
    throw refusal
  }

  async stop(id: string, graceMs: number): Promise<void> {
    const query = { t: String(Math.ceil(graceMs / 1_000)) }
    const timeoutMs = graceMs + stopSlackMs
    await this.client.does({ method: 'POST', path: `/containers/${id}/stop`, query, timeoutMs }, [204, 304, 404])
  }

  async logs(id: string, lines: number): Promise<string> {
    const query = { stdout: '1', stderr: '1', tail: String(lines) }
    const { status, body } = await this.client.call({ method: 'GET', path: `/containers/${id}/logs`, query })
    return status === 200 ? plainText(body).slice(-logBytes) : ''
  }

  async ending(id: string): Promise<ContainerEnding | null> {
    const path = `/containers/${id}/json`
    if ((await this.client.call({ method: 'GET', path })).status === 404) return null
    const { State } = await this.client.read({ method: 'GET', path }, inspected)
    return State.Running ? null : { exitCode: State.ExitCode, isOutOfMemory: State.OOMKilled }
  }

  async remove(name: string, volume: string | null): Promise<void> {
    const query = { force: '1', v: '1' }
    const timeoutMs = Math.max(this.timeoutMs, 60_000)
    await this.client.does({ method: 'DELETE', path: `/containers/${name}`, query, timeoutMs }, [204, 404])
    if (volume !== null) await this.removeVolume(volume)
  }

  async removeVolume(name: string): Promise<void> {
    await this.client.does({ method: 'DELETE', path: `/volumes/${name}`, query: { force: '1' } }, [204, 404])
  }

  async list(serverId: string): Promise<Container[]> {
    const filters = JSON.stringify({ label: [`${label.server}=${serverId}`] })
    const rows = await this.client.read(
      { method: 'GET', path: '/containers/json', query: { all: '1', filters } },
      listed,
    )
    return rows.map(({ Id, Names, State, Labels }) => ({
      id: Id,
      name: (Names[0] ?? '').replace(/^\//, ''),
      sandboxId: idFrom(Labels[label.sandbox] ?? ''),
      state: State === 'created' ? 'created' : isAlive(State) ? 'running' : 'exited',
    }))
  }

  async listVolumes(serverId: string): Promise<string[]> {
    const filters = JSON.stringify({ label: [`${label.server}=${serverId}`] })
    const { Volumes } = await this.client.read({ method: 'GET', path: '/volumes', query: { filters } }, volumes)
    return (Volumes ?? []).map(({ Name }) => Name)
  }

  async watch(serverId: string, hurry: () => void, signal: AbortSignal): Promise<void> {
    const filters = JSON.stringify({ type: ['container'], label: [`${label.server}=${serverId}`] })
    await this.client.follow({ method: 'GET', path: '/events', query: { filters } }, hurry, signal)
  }
}

const isAlive = (state: string) => ['running', 'paused', 'restarting', 'removing'].includes(state)

/** Describes the container. This function alone says what a sandbox may do. */
function containerOf(spec: ContainerSpec): Record<string, unknown> {
  const { size } = spec
  return {
    Image: spec.image,
    User: '1000:1000',
    WorkingDir: sandboxPlaces.work,
    Hostname: 'sandbox',
    Env: [],
    AttachStdin: false,
    Tty: false,
    Labels: {
      [label.server]: spec.serverId,
      [label.sandbox]: spec.sandboxId,
      ...(spec.of === null
        ? { [label.warm]: 'true' }
        : { [label.workspace]: spec.of.workspaceId, [label.run]: spec.of.runId }),
    },
    HostConfig: {
      Init: true,
      NetworkMode: 'none',
      ReadonlyRootfs: true,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      Privileged: false,
      Memory: size.memoryBytes,
      // The equal limit leaves no swap.
      MemorySwap: size.memoryBytes,
      NanoCpus: Math.round(size.cpus * 1e9),
      PidsLimit: size.pids,
      IpcMode: 'private',
      RestartPolicy: { Name: 'no' },
      LogConfig: { Type: 'json-file', Config: { 'max-size': '1m', 'max-file': '1' } },
      Mounts: [
        {
          Type: 'volume',
          Source: spec.volume,
          Target: sandboxPlaces.work,
          VolumeOptions: { Labels: { [label.server]: spec.serverId } },
        },
        { Type: 'bind', Source: spec.brokerFolder, Target: sandboxPlaces.broker, ReadOnly: true },
      ],
      Tmpfs: { '/tmp': 'rw,exec,nosuid,nodev,mode=1777,size=256m' },
      ...(spec.runtime !== null && { Runtime: spec.runtime }),
    },
  }
}
