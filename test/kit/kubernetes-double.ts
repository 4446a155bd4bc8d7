import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { forward } from '../../device-manager/sandbox/forwarder.ts'
import { brokerHello, sandboxIdentity, type SandboxIdentity } from '../../shared/device/sandbox.ts'
import { sandboxPlaces } from '../../shared/runs/sandbox-places.ts'
import { FakeDevice } from './fake-device.ts'
import { leftWhereLost, workOnce, type EnterSandbox } from './fake-runner.ts'

export interface Manifest {
  apiVersion: string
  kind: string
  metadata: { name: string; labels: Record<string, string> }
  spec?: Record<string, unknown>
  data?: Record<string, string>
}

interface DoubleJob {
  manifest: Manifest
  isSuspended: boolean
  /** null: it has none yet, or it is gone. */
  pod: DoublePod | null
}

export interface DoublePod {
  name: string
  job: string
  phase: 'Pending' | 'Running' | 'Succeeded' | 'Failed'
  exitCode: number | null
  reason: string | null
  labels: Record<string, string>
  identity: SandboxIdentity
}

/** What happens to a call: refused with a status, its answer is lost after its effect, its connection is cut before. */
export type ClusterFault = { status: number; message: string; reason?: string } | 'lost' | 'cut' | 'garbage' | null

const namespace = 'svc-sandboxes'
const fixture = (name: string) => readFileSync(join(import.meta.dirname, '../fixtures/tls', name), 'utf8')

/**
 * The API of a cluster, as far as sandboxes use it, with faults that a test chooses. A pod is played by the test: its runner is a fake
 * device that reaches its broker as the forwarder of a real one does. Every manifest is kept.
 */
export class KubernetesDouble {
  readonly jobs = new Map<string, DoubleJob>()
  readonly secrets = new Map<string, Manifest>()
  readonly claims = new Map<string, Manifest>()
  readonly manifests: Manifest[] = []
  /** Jobs at once, at most. */
  peak = 0
  token = 'token-1'
  fault: (call: string) => ClusterFault = () => null
  /** How long a pod waits for a node. */
  placed: () => Promise<void> = () => Promise.resolve()
  private readonly folder = mkdtempSync(join(tmpdir(), 'svc-kd-'))
  private readonly server: Server
  private readonly followers = new Set<ServerResponse>()
  private readonly playing = new Set<Promise<void>>()
  private readonly play: (pod: DoublePod) => Promise<number>
  private pods = 0

  constructor(play: (pod: DoublePod) => Promise<number>) {
    this.play = play
    const certificate = { key: fixture('loopback-key.pem'), cert: fixture('loopback-cert.pem') }
    this.server = createServer(certificate, (request, response) => void this.answer(request, response))
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve))
    this.rotate(this.token)
    return this
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections()
    await new Promise<void>((resolve) => this.server.close(() => resolve()))
    await Promise.all(this.playing)
    rmSync(this.folder, { recursive: true, force: true })
  }

  /** The settings of a server that uses it. */
  settings(brokerPort: number): Record<string, string> {
    return {
      SVC_SANDBOX: 'kubernetes',
      SVC_SANDBOX_NAMESPACE: namespace,
      SVC_SANDBOX_IMAGE: `images.example.com/svc-sandbox@sha256:${'ab'.repeat(32)}`,
      SVC_SANDBOX_BROKER_HOST: '127.0.0.1',
      SVC_SANDBOX_BROKER_PORT: String(brokerPort),
      SVC_SANDBOX_CLUSTER_URL: `https://127.0.0.1:${(this.server.address() as AddressInfo).port}`,
      SVC_SANDBOX_CLUSTER_TOKEN_FILE: join(this.folder, 'token'),
      SVC_SANDBOX_CLUSTER_CA_FILE: join(import.meta.dirname, '../fixtures/tls/loopback-cert.pem'),
    }
  }

  /** From now on another token is the one that counts, and the file has it. */
  rotate(token: string): void {
    this.token = token
    writeFileSync(join(this.folder, 'token'), `${token}\n`)
  }

  /** Ends a pod from outside. */
  end(pod: DoublePod, exitCode = 137, reason: string | null = null): void {
    if (pod.exitCode !== null) return
    Object.assign(pod, { phase: exitCode === 0 ? 'Succeeded' : 'Failed', exitCode, reason })
    this.tell()
  }

  get isEmpty(): boolean {
    return this.jobs.size === 0 && this.secrets.size === 0 && this.claims.size === 0
  }

  /** A watch ends, as that of a server does whose memory goes no further back. */
  forget(): void {
    const gone = { kind: 'Status', code: 410, reason: 'Expired', message: 'too old resource version' }
    for (const follower of this.followers) follower.end(`${JSON.stringify({ type: 'ERROR', object: gone })}\n`)
  }

  private tell(): void {
    for (const follower of this.followers) follower.write('{"type":"MODIFIED","object":{"kind":"Pod"}}\n')
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    const url = new URL(request.url ?? '/', 'https://cluster')
    if (request.headers.authorization !== `Bearer ${this.token}`)
      return send(response, [401, status(401, 'Unauthorized')])
    const isWatch = url.searchParams.get('watch') === '1'
    const fault = isWatch ? null : this.fault(`${request.method} ${url.pathname}`)
    if (fault === 'cut') return void response.destroy()
    if (fault !== null && typeof fault === 'object')
      return send(response, [fault.status, status(fault.status, fault.message, fault.reason)])
    if (isWatch) {
      response.writeHead(200).flushHeaders()
      this.followers.add(response)
      return void response.once('close', () => this.followers.delete(response))
    }
    const body = chunks.length === 0 ? null : (JSON.parse(Buffer.concat(chunks).toString()) as Manifest)
    const reply = this.act(`${request.method}`, url, body)
    if (fault === 'lost') return void response.destroy()
    if (fault === 'garbage') return void response.writeHead(reply[0]).end('<html>')
    send(response, reply)
  }

  private act(method: string, url: URL, body: Manifest | null): [number, unknown] {
    if (url.pathname === `/api/v1/namespaces/${namespace}`)
      return [200, { kind: 'Namespace', metadata: { uid: `double ${this.folder}` } }]
    const [, kind, name, verb] =
      new RegExp(`^/(?:api/v1|apis/batch/v1)/namespaces/${namespace}/(\\w+)(?:/([^/]+))?(?:/(\\w+))?$`).exec(
        url.pathname,
      ) ?? []
    if (kind === undefined) throw new Error(`The double knows no ${url.pathname}`)
    if (method === 'POST' && url.searchParams.get('dryRun') === 'All') return [201, body]
    if (method === 'POST') return this.create(kind, body!)
    if (kind === 'pods') return this.actOnPods(method, url, { name, verb })
    if (name === undefined) return this.list(kind, url)
    return this.actOn(kind, name, { method, body })
  }

  private create(kind: string, manifest: Manifest): [number, unknown] {
    const { name } = manifest.metadata
    const all = kind === 'jobs' ? this.jobs : kind === 'secrets' ? this.secrets : this.claims
    if (all.has(name)) return [409, status(409, `${kind} "${name}" already exists`, 'AlreadyExists')]
    this.manifests.push(manifest)
    if (kind === 'jobs') this.jobs.set(name, { manifest, isSuspended: true, pod: null })
    else (all as Map<string, Manifest>).set(name, manifest)
    this.peak = Math.max(this.peak, this.jobs.size)
    return [201, manifest]
  }

  private actOnPods(
    method: string,
    url: URL,
    { name, verb }: { name: string | undefined; verb: string | undefined },
  ): [number, unknown] {
    const pods = [...this.jobs.values()].flatMap(({ pod }) => pod ?? [])
    if (name === undefined) {
      const found = pods.filter((pod) => fits(url, { ...pod.labels, 'job-name': pod.job }))
      return [200, { kind: 'PodList', metadata: {}, items: found.map(shownPod) }]
    }
    const pod = pods.find((each) => each.name === name)
    if (pod === undefined) return [404, status(404, `pods "${name}" not found`)]
    if (verb === 'log') return [200, `said by ${name}\n`]
    if (method === 'DELETE') this.end(pod, 143)
    return [200, shownPod(pod)]
  }

  /** One page at a time, so that pages are turned. */
  private list(kind: string, url: URL): [number, unknown] {
    const all = kind === 'jobs' ? [...this.jobs.values()].map(shownJob) : [...this.claims.values()]
    const found = all.filter(({ metadata }) => fits(url, metadata.labels))
    const from = Number(url.searchParams.get('continue') ?? 0)
    const next = from + 2
    const metadata = next < found.length ? { continue: String(next) } : {}
    return [200, { kind: 'List', metadata, items: found.slice(from, next) }]
  }

  private actOn(
    kind: string,
    name: string,
    { method, body }: { method: string; body: Manifest | null },
  ): [number, unknown] {
    const all: Map<string, unknown> = kind === 'jobs' ? this.jobs : kind === 'secrets' ? this.secrets : this.claims
    const found = all.get(name)
    if (found === undefined) return [404, status(404, `${kind} "${name}" not found`, 'NotFound')]
    if (method === 'GET') return [200, kind === 'jobs' ? shownJob(found as DoubleJob) : found]
    if (method === 'PATCH') {
      if (body?.spec?.['suspend'] === false) this.begin(found as DoubleJob)
      return [200, shownJob(found as DoubleJob)]
    }
    const pod = kind === 'jobs' ? (found as DoubleJob).pod : null
    if (pod !== null) this.end(pod)
    all.delete(name)
    this.tell()
    return [200, status(200, 'deleted')]
  }

  private begin(job: DoubleJob): void {
    if (!job.isSuspended) return
    job.isSuspended = false
    const { name, labels } = job.manifest.metadata
    const secret = this.secrets.get(name)!.data![sandboxPlaces.identity]!
    const pod: DoublePod = {
      name: `${name}-${++this.pods}`,
      job: name,
      phase: 'Pending',
      exitCode: null,
      reason: null,
      labels,
      identity: sandboxIdentity.parse(JSON.parse(Buffer.from(secret, 'base64').toString())),
    }
    job.pod = pod
    this.tell()
    const run = async () => {
      await this.placed()
      pod.phase = 'Running'
      this.tell()
      return this.play(pod)
    }
    const played = run()
      .catch(() => 1)
      .then((exitCode) => this.end(pod, exitCode))
      .finally(() => this.playing.delete(played))
    this.playing.add(played)
  }
}

/** By equality, as the server asks. */
function fits(url: URL, labels: Record<string, string>): boolean {
  const [name, value] = (url.searchParams.get('labelSelector') ?? '=').split('=')
  return labels[name!] === value
}

const status = (code: number, message: string, reason = '') => ({ kind: 'Status', code, message, reason })

const shownJob = ({ manifest, isSuspended, pod }: DoubleJob) => ({
  metadata: manifest.metadata,
  spec: { suspend: isSuspended },
  status:
    pod === null || pod.exitCode === null
      ? {}
      : { conditions: [{ type: pod.exitCode === 0 ? 'Complete' : 'Failed', status: 'True' }] },
})

const shownPod = ({ name, labels, job, phase, exitCode, reason }: DoublePod) => ({
  metadata: { name, labels: { ...labels, 'job-name': job }, creationTimestamp: '2026-01-01T00:00:00Z' },
  status: {
    phase,
    containerStatuses: [
      { state: exitCode === null ? { running: {} } : { terminated: { exitCode, ...(reason !== null && { reason }) } } },
    ],
  },
})

function send(response: ServerResponse, [code, reply]: [number, unknown]): void {
  response.writeHead(code, { 'content-type': 'application/json' })
  response.end(typeof reply === 'string' ? reply : JSON.stringify(reply))
}

/** The runner in a pod, as it says hello over its broker. One that is to tell what a run left has nothing of it, and leaves. */
export async function runnerInPod(pod: Pick<DoublePod, 'identity'>): Promise<FakeDevice> {
  return leftWhereLost(await deviceInPod(pod), pod.identity)
}

export const deviceInPod: EnterSandbox<Pick<DoublePod, 'identity'>> = async ({ identity }, hello) => {
  const { sandbox, host, port, key } = identity.broker!
  const way = await forward({ host, port, hello: brokerHello(sandbox, key) }, { port: 0 })
  const device = await FakeDevice.open({ nextUrl: () => `http://127.0.0.1:${way.port}` }, identity, hello)
  void device.closed.then(() => way.close())
  await device.next('welcome')
  return device
}

/** Takes the run of the pod, says something, ends it and leaves. */
export async function playPod(pod: DoublePod): Promise<number> {
  return workOnce(await runnerInPod(pod), pod.name)
}
