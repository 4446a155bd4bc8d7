import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { WebhookDelivery } from '../../shared/api/webhook-fields.ts'
import { openDatabase } from '../../control-plane/db/open.ts'
import { isLong } from '../kit/forms.ts'
import { HookReceiver } from '../kit/hook-receiver.ts'
import { waitFor } from '../kit/programs.ts'
import { TestSystem } from '../kit/system.ts'

// A server that is killed while it has something to tell.

/** Kills after a change. */
const rounds = isLong ? 10 : 1

let system: TestSystem, receiver: HookReceiver
let webhookId: string
beforeAll(async () => {
  receiver = await HookReceiver.start()
  system = await TestSystem.start({ devices: 0, serverEnv: { SVC_ALLOW_HOSTS: '127.0.0.1' } })
  const made = await system.api.insist<{ id: string }>('/webhooks', { url: receiver.url, events: ['task.created'] })
  webhookId = made.id
})
afterAll(async () => {
  await system.stop()
  await receiver.stop()
})

const makeTask = (title: string) => system.api.insist<{ id: string }>('/tasks', { title, force: true })
const deliveries = async () =>
  (await system.api.call<{ data: WebhookDelivery[] }>('GET', `/webhooks/${webhookId}/deliveries`)).data

/** Does it to the database of the server that is down. */
async function inDatabase(work: (root: ReturnType<typeof openDatabase>['root']) => Promise<unknown>): Promise<void> {
  const database = openDatabase({ url: join(system.server.dataDir, 'svc.db') })
  await work(database.root)
  await database.close()
}

test('killed between the answer and its note, it sends the event again under the same ids', async () => {
  receiver.answer = () => undefined
  const { id } = await makeTask('Twice')
  await receiver.until('task.created')
  await system.server.kill9()
  // The minute of the claim is over.
  await inDatabase((root) => root('webhook_deliveries').whereNotNull('due_at').update({ due_at: 1 }))
  receiver.status(200)
  await system.server.start()
  const [first, second] = await receiver.until('task.created', 2)
  expect(second!.json.data.id).toBe(id)
  expect(second!.body).toBe(first!.body)
  for (const name of ['svc-event-id', 'svc-delivery-id']) expect(second!.headers[name]).toBe(first!.headers[name])
  const [delivery, ...others] = await waitFor(async () => {
    const all = await deliveries()
    return all[0]?.status === 'succeeded' && all
  }, 'the delivery is noted')
  expect(others).toEqual([])
  expect(delivery!.attempts).toBe(2)
})

test('killed right after a change, it sends what the change has to tell', async () => {
  const made: string[] = []
  for (let round = 0; round < rounds; round++) {
    made.push((await makeTask(`Round ${round}`)).id)
    await system.server.kill9()
    // Whoever was at work when it was killed has had its minute.
    await inDatabase(async (root) => {
      await root('webhook_events').update({ due_at: 1 })
      await root('webhook_deliveries').whereNotNull('due_at').update({ due_at: 1 })
    })
    await system.server.start()
  }
  const told = () => new Set(receiver.of('task.created').map(({ json }) => json.data.id as string))
  await waitFor(() => made.every((id) => told().has(id)), 'every task is told of')
})
