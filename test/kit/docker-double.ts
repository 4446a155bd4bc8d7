import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sandboxIdentity, type SandboxIdentity } from '../../shared/device/sandbox.ts'
import { sandboxPlaces } from '../../shared/runs/sandbox-places.ts'
import { FakeDevice } from './fake-device.ts'
import { leftWhereLost, workOnce, type EnterSandbox } from './fake-runner.ts'
import { delay } from './programs.ts'

/** A container of the double. */
export interface DoubleContainer {
  id: string
  name: string
  image: string
  labels: Record<string, string>
  state: 'created' | 'running' | 'exited'
  exitCode: number
  /** The folder with its token and its broker. */
  folder: string
  /** The engine was killed while it started this one: it can never be started. */
  isHalfStarted: boolean
}

/** What happens to a call: it is refused with a status, its answer is lost (after its effect), or its connection is cut before. */
export type Fault = 400 | 409 | 429 | 500 | 503 | 'lost' | 'cut' | 'garbage' | null

/**
 * The API of a Docker engine, as far as sandboxes use it, with faults that a test chooses. A container that is started is played by the
 * test: its runner is a fake device over the socket of its broker.
 */
export class DockerDouble {
  readonly socket: string
  readonly containers = new Map<string, DoubleContainer>()
  readonly volumes = new Set<string>()
  /** Names in the order of their creation. */
  readonly created: string[] = []
  /** Containers at once, at most. */
  peak = 0
  fault: (call: string) => Fault = () => null
  /** Its id; null: it was removed. */
  image: string | null = `sha256:${'ab'.repeat(32)}`
  private readonly folder = mkdtempSync(join(tmpdir(), 'svc-dd-'))
  private readonly server: Server
  private readonly followers = new Set<ServerResponse>()
  private readonly playing = new Set<Promise<void>>()
  private readonly play: (container: DoubleContainer, nth: number) => Promise<number>

  /** `play`: what is in a container, from its start to its exit status. */
  constructor(play: (container: DoubleContainer, nth: number) => Promise<number>) {
    this.play = play
    this.socket = join(this.folder, 's')
    this.server = createServer((request, response) => void this.answer(request, response))
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.server.listen(this.socket, resolve))
    return this
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections()
    await new Promise<void>((resolve) => this.server.close(() => resolve()))
    await Promise.all(this.playing)
    rmSync(this.folder, { recursive: true, force: true })
  }

  /** Ends a container from outside. */
  kill(container: DoubleContainer, exitCode = 137): void {
    if (container.state !== 'running') return
    Object.assign(container, { state: 'exited', exitCode })
    this.tell()
  }

  private tell(): void {
    for (const follower of this.followers) follower.write('{"Type":"container"}\n')
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    const url = new URL(request.url ?? '/', 'http://engine')
    const path = url.pathname.replace(/^\/v1\.\d+/, '')
    const call = `${request.method} ${path}`
    const fault = path === '/events' ? null : this.fault(call)
    if (fault === 'cut') return void response.destroy()
    if (typeof fault === 'number') return send(response, fault, { message: 'the engine has a bad day' })
    const body = chunks.length === 0 ? {} : (JSON.parse(Buffer.concat(chunks).toString()) as Body)
    const [status, reply] = this.act(call, { query: url.searchParams, body, response })
    if (status === 0) return
    if (fault === 'lost') return void response.destroy()
    if (fault === 'garbage') return void response.writeHead(status).end('<html>')
    send(response, status, reply)
  }

  /** Status 0: the answer goes on. */
  private act(
    call: string,
    { query, body, response }: { query: URLSearchParams; body: Body; response: ServerResponse },
  ): [number, unknown] {
    const [, method, what = '', id = '', verb = ''] = /^(\w+) \/(\w+)(?:\/([^/]+))?(?:\/(\w+))?$/.exec(call) ?? []
    const container = this.find(id)
    switch (`${method} ${what}${verb === '' ? '' : ` ${verb}`}`) {
      case 'GET version':
        return [200, { ApiVersion: '1.44' }]
      case 'GET info':
        return [200, { ID: `double ${this.socket}`, NCPU: 2 }]
      case 'GET images json':
        return this.image === null ? noSuch : [200, { Id: this.image }]
      case 'GET events':
        response.writeHead(200).flushHeaders()
        this.followers.add(response)
        response.once('close', () => this.followers.delete(response))
        return [0, null]
      case 'POST containers':
        return this.create(query.get('name') ?? '', body)
      case 'GET containers':
        return [200, [...this.containers.values()].map(listed)]
      case 'GET containers json':
        return container === null ? noSuch : [200, { Id: container.id, State: stateOf(container) }]
      case 'GET containers logs':
        return [200, '']
      case 'POST containers start':
        return container === null ? noSuch : this.begin(container)
      case 'POST containers stop':
        if (container !== null) this.kill(container, 143)
        return container === null ? noSuch : [204, null]
      case 'DELETE containers':
        if (container === null) return noSuch
        this.kill(container)
        this.containers.delete(container.id)
        this.tell()
        return [204, null]
      case 'GET volumes':
        return [200, { Volumes: [...this.volumes].map((name) => ({ Name: name })) }]
      case 'DELETE volumes':
        return this.volumes.delete(id) ? [204, null] : noSuch
      default:
        throw new Error(`The double knows no ${call}`)
    }
  }

  private find(idOrName: string): DoubleContainer | null {
    return [...this.containers.values()].find(({ id, name }) => id === idOrName || name === idOrName) ?? null
  }

  private create(name: string, { Image: image = '', Labels: labels = {}, HostConfig }: Body): [number, unknown] {
    if (image !== this.image) return noSuch
    if (this.find(name) !== null) return [409, { message: `The name ${name} is in use.` }]
    const id = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('hex')
    const folder = HostConfig?.Mounts.find(({ Type }) => Type === 'bind')?.Source ?? ''
    this.containers.set(id, { id, name, image, labels, state: 'created', exitCode: 0, folder, isHalfStarted: false })
    this.volumes.add(HostConfig?.Mounts.find(({ Type }) => Type === 'volume')?.Source ?? name)
    this.created.push(name)
    this.peak = Math.max(this.peak, this.containers.size)
    this.tell()
    return [201, { Id: id }]
  }

  private begin(container: DoubleContainer): [number, unknown] {
    if (container.state === 'running') return [304, null]
    if (container.isHalfStarted) return [500, { message: `task ${container.id}: already exists` }]
    container.state = 'running'
    const played = this.play(container, this.created.length)
      .catch(() => 1)
      .then((exitCode) => this.kill(container, exitCode))
      .finally(() => this.playing.delete(played))
    this.playing.add(played)
    this.tell()
    return [204, null]
  }
}

interface Body {
  Image?: string
  Labels?: Record<string, string>
  HostConfig?: { Mounts: { Type: string; Source: string }[] }
}

const noSuch: [number, unknown] = [404, { message: 'No such container.' }]

const listed = ({ id, name, labels, state }: DoubleContainer) => ({
  Id: id,
  Names: [`/${name}`],
  State: state,
  Labels: labels,
})

const stateOf = ({ state, exitCode }: DoubleContainer) => ({
  Running: state === 'running',
  ExitCode: exitCode,
  OOMKilled: false,
})

function send(response: ServerResponse, status: number, reply: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(reply === null ? undefined : typeof reply === 'string' ? reply : JSON.stringify(reply))
}

/** The runner in a container, as it says hello over its broker. One that is to tell what a run left has nothing of it, and leaves. */
export async function runnerIn(container: DoubleContainer): Promise<FakeDevice> {
  const identity = await identityIn(container)
  return leftWhereLost(await deviceIn(container), identity)
}

/** What the container reads of itself until it is linked, once it is told. */
export async function identityIn(container: DoubleContainer): Promise<SandboxIdentity> {
  const { folder } = container
  const file = join(folder, sandboxPlaces.identity)
  while (existsSync(join(folder, sandboxPlaces.waiting)) && !existsSync(file)) {
    if (container.state !== 'running') throw new Error('it was ended before it had a run')
    await delay(10)
  }
  return sandboxIdentity.parse(JSON.parse(readFileSync(file, 'utf8')))
}

export const deviceIn: EnterSandbox<DoubleContainer> = async (container, hello) => {
  const place = { nextUrl: () => `http+unix://${join(container.folder, sandboxPlaces.socket)}:` }
  const device = await FakeDevice.open(place, await identityIn(container), hello)
  await device.next('welcome')
  return device
}

/** Takes the run of the container, says something, ends it and leaves. */
export async function playRun(container: DoubleContainer): Promise<number> {
  return workOnce(await runnerIn(container), container.name)
}
