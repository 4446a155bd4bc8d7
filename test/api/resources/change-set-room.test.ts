import { get, type IncomingMessage } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ChangeSetResult } from '../../../shared/device/change-set.ts'
import { FakeDevice } from '../../kit/fake-device.ts'
import { TestServer } from '../../kit/server.ts'

// Change-sets are as large as a device makes them, so those that nobody takes share the room of all answers.

let server: TestServer
let device: FakeDevice
beforeAll(async () => {
  server = await TestServer.start()
  device = await FakeDevice.connect(server)
})
afterAll(async () => {
  await device.disconnect()
  await server.stop()
})

const bytes = 10 * 1024 * 1024
const point = { commit: null, branch: null }
const large: ChangeSetResult = {
  ok: true,
  changeSet: {
    base: point,
    head: point,
    files: [],
    additions: 0,
    deletions: 0,
    diff: 'x'.repeat(bytes),
    capturedAt: 1_760_000_000_000,
  },
}

async function untaken(path: string): Promise<IncomingMessage> {
  const headers = { authorization: `Bearer ${server.owner.token}` }
  const answer = await new Promise<IncomingMessage>((resolve, reject) =>
    get(`${server.url}/api/v1${path}`, { headers, agent: false }, resolve).once('error', reject),
  )
  expect(answer.statusCode).toBe(200)
  return answer.pause()
}

test.each(['live', 'stored'])(
  'a reader that takes no %s change-set holds up its own next one, and nobody else',
  async (which) => {
    const run = await (await server.startRun((await server.createAgent()).id), device.take())
    if (which === 'live') device.changeSetAnswer = () => large
    else {
      device.sendChangeSet({ runId: run.runId, fence: run.fence, requestId: null }, large)
      await run.end()
    }
    const path = `/runs/${run.runId}/change-set`
    const first = await untaken(path)
    let isAnswered = false
    const second = server.call(path).finally(() => (isAnswered = true))
    const other = await server.addPerson('admin')
    for (let reads = 0; reads < 3; reads++)
      expect((await server.call(path, { token: other.token })).body.diff).toHaveLength(bytes)
    expect(isAnswered).toBe(false)
    first.destroy()
    expect((await second).body.diff).toHaveLength(bytes)
    if (which === 'live') {
      device.changeSetAnswer = null
      await run.end()
    }
  },
)
