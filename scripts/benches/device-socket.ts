import type { RunId } from '../../shared/lib/ids.ts'
import { WebSocket } from 'ws'
import type { EnrolReply } from '../../shared/device/control.ts'
import { linkLimits } from '../../shared/device/limits.ts'
import { serverMessage, type DeviceMessage, type ServerMessage } from '../../shared/device/protocol.ts'
import { endReport } from '../../test/kit/end-report.ts'
import { enrol, type BenchServer } from './stack.ts'

type Named<T extends ServerMessage['type']> = ServerMessage & { type: T }

/** What a device says that has room for runs. */
export const takesRuns = { accepting: true, reason: null, message: null, activeRuns: 0 } as const

/** The device's end of a link without a device manager behind it, so that the other end alone is measured. */
export interface DeviceSocket {
  socket: WebSocket
  publicId: string
  deviceId: string
  send(message: DeviceMessage): void
  next<T extends ServerMessage['type']>(type: T): Promise<Named<T>>
  /** The same, and leaves the message for `next`. */
  peek<T extends ServerMessage['type']>(type: T): Promise<Named<T>>
  /** From now on messages go there, until `reset`. */
  onMessage(handler: (message: ServerMessage) => void): void
  reset(): void
  close(): Promise<void>
}

export async function connectDevice(server: BenchServer, name: string): Promise<DeviceSocket> {
  return openLink(server, await enrol(server, name))
}

/** The link of a device that is enrolled. */
export async function openLink(server: BenchServer, identity: EnrolReply): Promise<DeviceSocket> {
  const socket = new WebSocket(`${server.url.replace('http', 'ws')}/api/device/link`, { perMessageDeflate: false })
  const inbox: ServerMessage[] = []
  let waiting: (() => void)[] = []
  let closedBy: number | null = null
  const wakeAll = () => {
    const woken = waiting
    waiting = []
    for (const wake of woken) wake()
  }
  const keep = (message: ServerMessage) => {
    inbox.push(message)
    wakeAll()
  }
  socket.once('close', (code) => {
    closedBy = code
    wakeAll()
  })
  const find = async <T extends ServerMessage['type']>(type: T): Promise<Named<T>> => {
    for (;;) {
      const found = inbox.find((message) => message.type === type)
      if (found) return serverMessage.parse(found) as Named<T>
      if (closedBy !== null) throw new Error(`the link was closed with ${closedBy} before ${type} came`)
      await new Promise<void>((resolve) => waiting.push(resolve))
    }
  }
  let handler = keep
  socket.on('message', (bytes: Buffer) => handler(JSON.parse(bytes.toString('utf8')) as ServerMessage))
  await new Promise<void>((resolve, reject) => {
    socket.once('open', resolve)
    socket.once('error', reject)
  })
  const device: DeviceSocket = {
    socket,
    publicId: identity.publicId,
    deviceId: identity.deviceId,
    send: (message) => socket.send(JSON.stringify(message)),
    async next<T extends ServerMessage['type']>(type: T): Promise<Named<T>> {
      const found = await find(type)
      inbox.splice(
        inbox.findIndex((message) => message.type === type),
        1,
      )
      return found
    },
    peek: find,
    onMessage: (next) => void (handler = next),
    reset: () => void (handler = keep),
    async close() {
      const closed = new Promise((resolve) => socket.once('close', resolve))
      socket.close()
      await closed
    },
  }
  device.send({
    type: 'hello',
    protocol: linkLimits.protocol,
    token: identity.token,
    publicId: identity.publicId,
    instance: crypto.randomUUID(),
    version: '0.0.0',
    platform: 'linux',
    hostname: identity.displayName,
    runs: [],
    claimState: takesRuns,
  })
  await device.next('welcome')
  return device
}

/** Wakes the agent and takes its run. */
export async function takeRun(
  server: BenchServer,
  { device, agentId }: { device: DeviceSocket; agentId: string },
): Promise<{ runId: RunId; fence: number; token: string }> {
  await server.call('POST', `/agents/${agentId}/runs`, { prompt: 'Go.' })
  const { runId, fence } = await device.next('run.offer')
  device.send({ type: 'run.accepted', runId, fence })
  const { token } = await device.next('run.start')
  return { runId, fence, token }
}

/** Ends it, so that its place on the device is free again. */
export async function endRun(
  device: DeviceSocket,
  run: { runId: RunId; fence: number },
  eventCount: number,
): Promise<void> {
  device.send({
    type: 'run.ended',
    runId: run.runId,
    fence: run.fence,
    report: endReport({ eventCount }),
  })
  await device.next('run.closed')
}
