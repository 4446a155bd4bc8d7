import { idFrom, type DeviceRef } from '../../../shared/lib/ids.ts'
import { createCatalog } from '../../../control-plane/catalog/catalog.ts'
import { loadServices } from '../../../control-plane/catalog/services.ts'
import { Waker } from '../../../control-plane/run/wakes/waker.ts'
import { silentLog } from '../../../control-plane/process/log.ts'
import type { IngestItem } from '../../../control-plane/link/ingest-item.ts'
import type { Topic } from '../../../control-plane/db/outbox.ts'
import { endReport } from '../../kit/end-report.ts'
import type { Person, Reply, TestServer } from '../../kit/server.ts'
import { claimRun, offerRuns } from '../../../control-plane/run/change-store.ts'

/** A workspace with one of each thing that the writes are about. The same on each server, but for the ids. */
export interface Scene {
  owner: Person
  member: Person
  /** Says what the things are called where states are compared. */
  names: Map<string, string>
  ids: Record<Thing, string>
}

const things = [
  'one',
  'two',
  'task',
  'other',
  'project',
  'channel',
  'queued',
  'running',
  'offered',
  'automation',
  'approval',
  'wake',
] as const
export type Thing = (typeof things)[number]

export const noDevice = idFrom<DeviceRef>('dvc_0000000000000000')

// oxlint-disable-next-line typescript/no-explicit-any
type Any = any

export async function makeScene(server: TestServer): Promise<Scene> {
  // Keys of tasks begin as it does.
  const slug = `order-${crypto.randomUUID().replaceAll('-', '')}`
  const owner = await server.addPerson('owner', slug)
  const member = await server.addPerson('member', slug)
  const { token } = owner
  const names = new Map<string, string>()
  const ids = {} as Record<Thing, string>
  const keep = (thing: Thing, made: Any): Any => {
    ids[thing] = made.id
    names.set(made.id, thing)
    if (made.uuid !== undefined) names.set(made.uuid, `${thing}-uuid`)
    return made
  }
  const post = async (path: string, body: unknown) => {
    const reply = await ask(server, { path, body, token })
    if (reply.status >= 300) throw new Error(`${path}: ${reply.status} ${JSON.stringify(reply.body)}`)
    return reply.body
  }
  const agent = (name: string) => server.createAgent({ name }, token)
  const run = async (thing: Thing, agentId: string) => keep(thing, { id: await server.startRun(agentId, {}, token) })
  keep('one', await agent('One'))
  keep('two', await agent('Two'))
  keep('task', await post('/tasks', { title: 'The task' }))
  keep('other', await post('/tasks', { title: 'The other', assignee: ids.one }))
  keep('project', await post('/projects', { name: 'Project' }))
  keep('channel', await post('/conversations', { kind: 'channel', title: 'Channel', participants: [ids.one] }))
  await run('queued', ids.one)
  await run('running', ids.two)
  await run('offered', ids.two)
  keep(
    'automation',
    await post('/automations', { name: 'Now and then', agentId: ids.one, prompt: 'Go.', trigger: { type: 'webhook' } }),
  )
  const { root } = server.database
  for (const runId of [ids.running, ids.offered])
    await offerRuns(root, {
      runIds: [idFrom(runId)],
      device: noDevice,
      at: server.world.now(),
      expiresAt: server.world.now() + 3_600_000,
    })
  await claimRun(root, { runId: idFrom(ids.running), fence: 1, device: noDevice, at: server.world.now() })
  const asked = await ask(server, {
    method: 'DELETE',
    path: `/agents/${ids.one}`,
    token: await server.runToken(idFrom(ids.running)),
  })
  if (asked.status !== 202) throw new Error(`no approval: ${JSON.stringify(asked.body)}`)
  keep('approval', { id: asked.body.approvalId })
  const wake: Any = await root('wakes').where({ task_id: ids.other, state: 'waiting' }).first('id')
  keep('wake', wake)
  names.set(owner.userId, 'owner').set(owner.uuid, 'owner-uuid')
  names.set(member.userId, 'member').set(member.uuid, 'member-uuid')
  names.set(owner.workspaceId, 'workspace')
  return { owner, member, names, ids }
}

export interface Asked {
  path: string
  method?: string
  body?: unknown
  token: string
}

export function ask(server: TestServer, { path, method = 'POST', body, token }: Asked): Promise<Reply> {
  const headers = { accept: 'application/json', 'idempotency-key': crypto.randomUUID() }
  return server.call(path, { method, body, token, headers })
}

/** Makes a run of the wake that waits, as the server's own waker does, which is stopped here: it would choose the moment. */
export async function takeWake(server: TestServer, id: string): Promise<unknown> {
  const handlers = new Map<Topic, (row: { key: string }) => void>()
  const waker = new Waker({
    root: server.database.root,
    world: server.world,
    log: silentLog,
    bus: {
      on: (topic: Topic, handler: (row: { key: string }) => void) => {
        handlers.set(topic, handler)
        return () => undefined
      },
      poke: () => undefined,
    } as never,
    context: {
      world: server.world,
      cloudEnabled: false,
      operatorKeys: [],
      runsWorkflows: true,
      builtInWorkflows: () => [],
      limits: {},
      catalog: createCatalog([]),
      services: loadServices(null),
      offers: server.plane.dispatcher,
    },
  })
  waker.start()
  handlers.get('wake.requested')?.({ key: id })
  await waker.idle()
  await waker.stop()
  return 'done'
}

/** Reports the end of the run; returns what the device that executes it is told. */
export async function endRun(server: TestServer, { ids, owner }: Scene): Promise<unknown> {
  const told: unknown[] = []
  const item: IngestItem = {
    kind: 'ended',
    runId: idFrom(ids.running),
    fence: 1,
    report: endReport(),
    device: noDevice,
    workspaceId: owner.workspaceId,
    send: (message) => void told.push(message.type),
    giveUp: () => void told.push('given up'),
  }
  await server.plane.ingest.push(item)
  return told
}

/** Whether the device that was offered the run gets it. */
export async function claimOffered(server: TestServer, { ids }: Scene): Promise<unknown> {
  const at = server.world.now()
  return (
    (await claimRun(server.database.root, {
      runId: idFrom(ids.offered),
      fence: 1,
      device: noDevice,
      at,
      isLone: true,
    })) !== null
  )
}
