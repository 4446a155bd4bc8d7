import { Agent, request, type IncomingMessage } from 'node:http'
import { enrolReply } from '../../shared/device/control.ts'
import { linkLimits } from '../../shared/device/limits.ts'
import { FakeDevice } from '../../test/kit/fake-device.ts'
import { ask, type BenchServer } from './stack.ts'

/**
 * A device that sends the longest events which the link takes, and longer ones, and readers of them: pages of one caller at once,
 * and streams that nobody reads.
 */
export async function besideLyingDevice(server: BenchServer, atOnce: number): Promise<void> {
  const enrolled = enrolReply.parse(
    await server.call('POST', '/api/device/enrol', { hostname: 'liar', platform: 'linux', version: '0.1.0' }),
  )
  const device = await FakeDevice.open({ nextUrl: () => server.url }, enrolled)
  await device.next('welcome')
  const agent = await server.call<{ id: string }>('POST', '/agents', {
    name: 'Liar',
    harness: 'command',
    command: 'true',
  })
  await server.call('POST', `/agents/${agent.id}/runs`, { prompt: 'Lie.' })
  const run = await device.take()
  for (const line of [...worstLines(), ...worstLines()]) await run.lines([line])
  const path = `/api/v1/runs/${run.runId}/events`
  const streams = await Promise.all(Array.from({ length: atOnce }, () => openUnread(server, path)))
  const keepAlive = new Agent({ keepAlive: true, maxSockets: atOnce })
  const page = { agent: keepAlive, url: `${server.url}${path}`, method: 'GET', token: server.token }
  await Promise.all(Array.from({ length: atOnce }, () => ask(page)))
  for (const stream of streams) stream.destroy()
  keepAlive.destroy()
  await run.end()
  await device.disconnect()
}

/** Some as long as a line may be, of values and of text, and one that is as long as a frame. */
function worstLines(): string[] {
  const line = (data: string) => `{"seq":1,"at":1,"kind":"text","data":${data}}`
  const room = linkLimits.lineBytes - 100
  const values = (value: string) =>
    line(
      `{"a":[${Array<string>(Math.floor(room / (value.length + 1)))
        .fill(value)
        .join(',')}]}`,
    )
  const text = line(JSON.stringify({ text: 'x'.repeat(room) }))
  const escaped = line(`{"text":"${String.raw`\u0001`.repeat(room / 6 - 10)}"}`)
  return [
    values('{"k":1}'),
    values('"ab"'),
    values('1234'),
    text,
    escaped,
    line(JSON.stringify({ text: 'x'.repeat(14_000_000) })),
  ]
}

/** Its socket is not read beyond what the system holds of it. */
function openUnread(server: BenchServer, path: string): Promise<IncomingMessage> {
  const headers = { authorization: `Bearer ${server.token}`, accept: 'text/event-stream' }
  return new Promise((resolve, reject) => {
    const sent = request(new URL(path, server.url), { headers }, (response) => {
      response.pause()
      response.on('error', () => undefined)
      resolve(response)
    })
    sent.on('error', reject)
    sent.end()
  })
}
