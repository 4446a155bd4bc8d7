import { idFrom } from '../../../shared/lib/ids.ts'
import { z } from 'zod'
import type { Container, ContainerEnding, ContainerSpec, EngineFacts, SandboxEngine } from '../engine.ts'
import { EngineError } from '../engine.ts'
import { KubernetesClient, type KubernetesClientOptions } from './client.ts'
import { claimOf, jobOf, labels, nameAnnotation, objectName, secretOf } from './manifests.ts'

export interface KubernetesOptions extends KubernetesClientOptions {
  namespace: string
  /** The storage class of the volumes; null: the cluster's usual one. */
  storageClass: string | null
}

const text = z.string().max(4_096)
const words = z.string().max(65_536)
const metadata = z.object({ name: text, uid: text.optional(), labels: z.record(text, text).default({}) })
const condition = z.object({ type: text, status: text, reason: text.optional(), message: words.optional() })
const namespaceObject = z.object({ metadata: z.object({ uid: text.min(1) }) })
const named = z.object({ metadata: metadata.extend({ annotations: z.record(text, words).default({}) }) })
const job = named.extend({
  spec: z.object({ suspend: z.boolean().default(false) }),
  status: z.object({ conditions: z.array(condition).max(100).nullish() }).default({}),
})
const terminated = z.object({ exitCode: z.number().int(), reason: text.optional() })
const waiting = z.object({ reason: text.optional(), message: words.optional() })
const pod = z.object({
  metadata: metadata.extend({ creationTimestamp: text.nullish() }),
  status: z
    .object({
      phase: text.optional(),
      reason: text.optional(),
      message: words.optional(),
      conditions: z.array(condition).max(100).nullish(),
      containerStatuses: z
        .array(
          z.object({ state: z.object({ waiting: waiting.optional(), terminated: terminated.optional() }).default({}) }),
        )
        .max(10)
        .nullish(),
    })
    .default({}),
})
type Job = z.infer<typeof job>
type Pod = z.infer<typeof pod>
const page = <T extends z.ZodType>(item: T) =>
  z.object({ items: z.array(item).max(5_000), metadata: z.object({ continue: text.optional() }).default({}) })

const pageSize = 500
/** The server ends a watch by itself, and it is begun anew. */
const watchSeconds = 300
const logBytes = 64 * 1024
/** The processors of a cluster: they belong to all, and the scheduler finds a place for what a sandbox asks for. */
const cpusOfCluster = 1_000

/** A namespace of a cluster. A container stands here for a Job with its one pod. */
export class KubernetesEngine implements SandboxEngine {
  readonly kind = 'kubernetes'
  private readonly client: KubernetesClient
  private readonly options: KubernetesOptions

  constructor(options: KubernetesOptions) {
    this.options = options
    this.client = new KubernetesClient(options)
  }

  async identify(): Promise<EngineFacts> {
    const path = `/api/v1/namespaces/${this.options.namespace}`
    const { metadata: of } = await this.client.read({ method: 'GET', path }, namespaceObject)
    return { id: of.uid, cpus: cpusOfCluster }
  }

  /** The image is named by its digest (settings), and whether it can be had shows when a node pulls it. */
  async findImage(name: string): Promise<string | null> {
    return name
  }

  /** The cluster says what it would make of each object: rights, quotas, and what its policies of pods admit. */
  async findTroubles(spec: ContainerSpec): Promise<string[]> {
    const asked = [
      { path: this.core('persistentvolumeclaims'), body: claimOf(spec, this.options) },
      { path: this.core('secrets'), body: secretOf(spec) },
      { path: this.jobs(), body: jobOf(spec) },
    ]
    const troubles: string[] = []
    for (const each of asked) {
      const call = { method: 'POST', ...each, query: { dryRun: 'All' } } as const
      const reply = await this.client.call(call)
      if (reply.status >= 300) troubles.push(this.client.refusal(call, reply).message)
    }
    return troubles
  }

  async create(spec: ContainerSpec): Promise<string> {
    const { client, options } = this
    await client.make(this.core('persistentvolumeclaims'), claimOf(spec, options))
    // The secret says the same where another replica makes it again.
    await client.make(this.core('secrets'), secretOf(spec))
    await client.make(this.jobs(), jobOf(spec))
    return objectName(spec.name)
  }

  /** A Job runs once: the one that has ended goes first, and the Secret that named it. */
  async createAgain(spec: ContainerSpec): Promise<string> {
    const name = objectName(spec.name)
    await this.delete(this.jobs(name))
    await this.delete(this.core('secrets', name))
    if ((await this.client.call({ method: 'GET', path: this.jobs(name) })).status !== 404)
      throw new EngineError(`The cluster is still removing ${name}.`)
    if ((await this.podsOf(name)).length > 0) throw new EngineError(`The cluster still ends the pod of ${name}.`)
    return this.create(spec)
  }

  async start(id: string): Promise<void> {
    const type = 'application/merge-patch+json'
    await this.client.does({ method: 'PATCH', path: this.jobs(id), body: { spec: { suspend: false } }, type }, [200])
  }

  async stop(id: string, graceMs: number): Promise<void> {
    const query = { gracePeriodSeconds: String(Math.ceil(graceMs / 1_000)) }
    for (const { metadata: of } of await this.podsOf(id))
      await this.client.does({ method: 'DELETE', path: this.core('pods', of.name), query }, [200, 202, 404])
  }

  /** Resolves with what the pod wrote, or with the reason why none could write. */
  async logs(id: string, lines: number): Promise<string> {
    const last = (await this.podsOf(objectName(id))).at(-1)
    if (last === undefined) return ''
    const query = { tailLines: String(lines), limitBytes: String(logBytes) }
    const path = `${this.core('pods', last.metadata.name)}/log`
    const { status, body } = await this.client.call({ method: 'GET', path, query })
    return status === 200 && body.length > 0 ? body.toString('utf8').slice(-logBytes) : troubleOf(last)
  }

  async ending(id: string): Promise<ContainerEnding | null> {
    const ended = (await this.podsOf(id)).flatMap((each) => endedIn(each) ?? [])[0]
    if (ended === undefined) return null
    return { exitCode: ended.exitCode, isOutOfMemory: ended.reason === 'OOMKilled' }
  }

  async remove(name: string, volume: string | null): Promise<void> {
    await this.delete(this.jobs(objectName(name)))
    await this.delete(this.core('secrets', objectName(name)))
    if (volume !== null) await this.removeVolume(volume)
  }

  /** A claim that a pod still has goes with the pod. */
  async removeVolume(name: string): Promise<void> {
    await this.delete(this.core('persistentvolumeclaims', objectName(name)))
  }

  async list(serverId: string): Promise<Container[]> {
    const labelSelector = `${labels.server}=${serverId}`
    const [jobs, pods] = [
      await this.all(this.jobs(), labelSelector, job),
      await this.all(this.core('pods'), labelSelector, pod),
    ]
    return jobs.map((each) => {
      const { name, labels: its, annotations } = each.metadata
      const own = pods.filter(({ metadata: of }) => of.labels['job-name'] === name)
      return {
        id: name,
        name: annotations[nameAnnotation] ?? name,
        sandboxId: idFrom(its[labels.sandbox] ?? ''),
        state: stateOf(each, own),
      }
    })
  }

  async listVolumes(serverId: string): Promise<string[]> {
    const claims = await this.all(this.core('persistentvolumeclaims'), `${labels.server}=${serverId}`, named)
    return claims.map(({ metadata: { name, annotations } }) => annotations[nameAnnotation] ?? name)
  }

  async watch(serverId: string, hurry: () => void, signal: AbortSignal): Promise<void> {
    const query = { watch: '1', labelSelector: `${labels.server}=${serverId}`, timeoutSeconds: String(watchSeconds) }
    await this.client.follow({ method: 'GET', path: this.core('pods'), query }, hurry, signal)
  }

  private async podsOf(name: string): Promise<Pod[]> {
    const found = await this.all(this.core('pods'), `job-name=${name}`, pod)
    const madeAt = ({ metadata: of }: Pod) => of.creationTimestamp ?? ''
    return found.toSorted((a, b) => madeAt(a).localeCompare(madeAt(b)))
  }

  /** A list in pages. One whose place the server has forgotten (410) fails, and the next look begins anew. */
  private async all<T extends z.ZodType>(path: string, labelSelector: string, item: T): Promise<z.output<T>[]> {
    const found: z.output<T>[] = []
    for (let next: string | undefined; ;) {
      const query = { labelSelector, limit: String(pageSize), ...(next !== undefined && { continue: next }) }
      const answer = await this.client.read({ method: 'GET', path, query }, page(item))
      found.push(...answer.items)
      next = answer.metadata.continue
      if (next === undefined || next === '') return found
    }
  }

  private async delete(path: string): Promise<void> {
    const body = { apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy: 'Background' }
    await this.client.does({ method: 'DELETE', path, body }, [200, 202, 404])
  }

  private core(kind: 'pods' | 'secrets' | 'persistentvolumeclaims', name?: string): string {
    return within(`/api/v1/namespaces/${this.options.namespace}/${kind}`, name)
  }

  private jobs(name?: string): string {
    return within(`/apis/batch/v1/namespaces/${this.options.namespace}/jobs`, name)
  }
}

const within = (path: string, name?: string) => (name === undefined ? path : `${path}/${name}`)

/** A pod waits for a node, or for its image. */
function stateOf({ spec, status }: Job, pods: readonly Pod[]): Container['state'] {
  const isOver = (status.conditions ?? []).some(
    ({ type, status: is }) => is === 'True' && (type === 'Complete' || type === 'Failed'),
  )
  if (isOver || pods.some((each) => endedIn(each) !== null)) return 'exited'
  if (spec.suspend) return 'created'
  return pods.some(({ status: { phase } }) => phase === 'Running' || phase === 'Unknown') ? 'running' : 'waiting'
}

/** Returns how a pod ended; null: it has not. A node that is lost, or that evicts its pods, says nothing of their status. */
function endedIn({ status: { phase, containerStatuses } }: Pod): z.infer<typeof terminated> | null {
  const ended = (containerStatuses ?? []).find(({ state }) => state.terminated !== undefined)?.state.terminated
  if (ended !== undefined) return ended
  return phase === 'Failed' ? { exitCode: 137 } : phase === 'Succeeded' ? { exitCode: 0 } : null
}

/** Tells in the cluster's words why the pod does not run: no node has room, or the image cannot be had. */
function troubleOf({ status }: Pod): string {
  const unscheduled = (status.conditions ?? []).find(
    ({ status: is, message }) => is === 'False' && message !== undefined,
  )
  const held = (status.containerStatuses ?? []).find(({ state }) => state.waiting !== undefined)?.state.waiting
  const said = [held?.reason, held?.message, status.reason, status.message, unscheduled?.message]
  return said.filter((each) => each !== undefined && each !== '').join(': ')
}
