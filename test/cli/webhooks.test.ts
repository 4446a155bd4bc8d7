import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { HookReceiver } from '../kit/hook-receiver.ts'
import { useRealServer } from './real-server.ts'

// What docs/webhooks.md tells people: the commands, and the check of a signature.

const real = useRealServer({ SVC_ALLOW_HOSTS: '127.0.0.1' })
let receiver: HookReceiver
beforeAll(async () => {
  receiver = await HookReceiver.start()
})
afterAll(() => receiver.stop())

type IsFromSvc = (body: string, header: string, secret: string, nowMs?: number) => boolean

/** The function of the page, as whoever copies it has it. */
async function checkOfPage(): Promise<IsFromSvc> {
  const page = readFileSync(join(import.meta.dirname, '../../docs/webhooks.md'), 'utf8')
  const [, code] = /^```js\n(.*?)^```$/ms.exec(page)!
  const module = (await import(`data:text/javascript,${encodeURIComponent(code!)}`)) as { isFromSvc: IsFromSvc }
  return module.isFromSvc
}

async function svc(...line: readonly string[]) {
  const { stdout, stderr, status } = await real.svc(['webhook', ...line])
  expect(status, stderr).toBe(0)
  return JSON.parse(stdout === '' ? 'null' : stdout)
}

test('a webhook is made, tried, looked at and rotated by svc, and the check of the page knows who sent what comes', async () => {
  const isFromSvc = await checkOfPage()
  const { id, secret } = await svc('create', receiver.url, '--events', 'run.failed,approval.requested')
  expect((await svc('get', id)).events).toEqual(['run.failed', 'approval.requested'])
  await svc('ping', id)
  const [ping] = await receiver.until('ping')
  const header = String(ping!.headers['svc-signature'])
  expect(isFromSvc(ping!.body, header, secret)).toBe(true)
  expect(isFromSvc(`${ping!.body} `, header, secret)).toBe(false)
  expect(isFromSvc(ping!.body, header, `${secret}x`)).toBe(false)
  expect(isFromSvc(ping!.body, header, secret, Date.now() + 301_000)).toBe(false)
  for (const forged of ['', 'v1=00', 't=1', `t=${Math.floor(Date.now() / 1000)},v1=`, 't=x,v1=y'])
    expect(isFromSvc(ping!.body, forged, secret)).toBe(false)

  const rotated = await svc('rotate-secret', id, '--yes')
  await real.server.plane.sweeper.runAll()
  const [delivery] = (await svc('deliveries', id)).data
  expect(delivery).toMatchObject({ eventType: 'ping', status: 'succeeded', responseStatus: 200 })
  expect((await svc('delivery', id, delivery.id)).payload).toEqual(ping!.json)
  await svc('redeliver', id, delivery.id)
  const [, again] = await receiver.until('ping', 2)
  expect(again!.body).toBe(ping!.body)
  for (const key of [secret, rotated.secret])
    expect(isFromSvc(again!.body, String(again!.headers['svc-signature']), key)).toBe(true)

  expect((await svc('update', id, '--status', 'disabled')).disabledReason).toBe('by_person')
  await svc('delete', id, '--yes')
  expect((await svc('list')).data).toEqual([])
})

test('the table of deliveries says what came of each', async () => {
  const { id } = await svc('create', receiver.url, '--events', '*')
  receiver.status(500)
  await svc('ping', id)
  await receiver.until('ping', 3)
  await real.server.plane.sweeper.runAll()
  const { stdout } = await real.svc(['webhook', 'deliveries', id, '-o', 'tsv'])
  expect(stdout).toMatch(/^whd_\w{16}\tping\twaiting\t500\t1\t/)
  expect(stdout).toContain('The answer has the status 500.')
})
