import type { DeviceRef, RunId } from '../../shared/lib/ids.ts'
import { z } from 'zod'
import type { Knex } from 'knex'
import { changeSetResult, type ChangeSetResult } from '../../shared/device/change-set.ts'
import { folderCheck, type FolderCheck } from '../../shared/device/folder-check.ts'
import type { ServerMessage } from '../../shared/device/protocol.ts'
import type { World } from '../../shared/lib/world.ts'
import { findReply, insertReply } from '../db/device-replies.ts'
import type { Log } from '../process/log.ts'
import { findDeviceByPublicId } from '../resources/devices/store.ts'
import type { Bus } from '../db/bus.ts'
import type { LinkRegistry } from './registry.ts'
import { inTransaction, publish } from '../db/transaction.ts'

/**
 * Requests to a device whose link may be on another replica. The request travels as an outbox row, the answer as a row
 * of `device_replies` whose id comes back in the outbox. When a link is gone nobody answers, so the outbox row of its
 * end ends all requests made before. A device that had no link when a request was sent is looked up after the request
 * waits, so that one of the two always notices. Only answers of the asked device count, and they are stored only where
 * the request was handed on to it.
 */
export type DeviceRequest =
  | { type: 'change_set.get'; runId: RunId; fence: number }
  | { type: 'folder.check'; rootPath: string }

const reply = z.union([changeSetResult, folderCheck])
export type DeviceReply = z.infer<typeof reply>

/** The time for which a question that was handed on is remembered. It is longer than any caller waits for an answer. */
const handedOnMs = 60_000

interface Question {
  device: DeviceRef
  askedAt: number
  resolve: (reply: DeviceReply | null) => void
}

export class DeviceRequests {
  private readonly waiting = new Map<string, Question>()
  /** Requests of other replicas that were handed on, with the device; each until it is answered or old. */
  private readonly handedOn = new Map<string, string>()
  private readonly options: { root: Knex; world: World; bus: Bus; links: LinkRegistry; log: Log }
  private readonly unsubscribe: (() => void)[] = []

  constructor(options: { root: Knex; world: World; bus: Bus; links: LinkRegistry; log: Log }) {
    this.options = options
  }

  start(): void {
    const { bus, links } = this.options
    this.unsubscribe.push(
      bus.on('device.request', (row) => {
        if (links.isLinked(row.key) && !this.waiting.has(String(row.payload.requestId)))
          this.handOn(row.key, row.payload as unknown as ServerMessage & { requestId: string })
      }),
      bus.on('device.reply', (row) => {
        if (this.waiting.has(row.key)) void this.fetchReply(row.key)
      }),
      bus.on('device.changed', (row) => {
        const { unlinkedAt } = row.payload
        if (typeof unlinkedAt === 'number') this.giveUp(row.key, unlinkedAt)
      }),
    )
  }

  stop(): void {
    for (const off of this.unsubscribe.splice(0)) off()
    for (const { resolve } of this.waiting.values()) resolve(null)
    this.waiting.clear()
  }

  async changeSet(
    device: DeviceRef,
    run: { runId: RunId; fence: number },
    ms: number,
  ): Promise<ChangeSetResult | null> {
    const answer = await this.ask(device, { type: 'change_set.get', ...run }, ms)
    const parsed = changeSetResult.safeParse(answer)
    return parsed.success ? parsed.data : null
  }

  async checkFolder(device: DeviceRef, rootPath: string, ms: number): Promise<FolderCheck | null> {
    const parsed = folderCheck.safeParse(await this.ask(device, { type: 'folder.check', rootPath }, ms))
    return parsed.success ? parsed.data : null
  }

  /** Says whether an answer of the device to this request is waited for, here or at the replica that handed it on. */
  isAsked(device: DeviceRef, requestId: string): boolean {
    return this.waiting.get(requestId)?.device === device || this.handedOn.get(requestId) === device
  }

  /** Called when the device's answer arrived on its link on this replica. Ignores answers that nobody asked for. */
  async answered(device: DeviceRef, requestId: string, answer: DeviceReply): Promise<void> {
    if (this.waiting.get(requestId)?.device === device) return this.settle(requestId, answer)
    if (this.handedOn.get(requestId) !== device) return
    this.handedOn.delete(requestId)
    const { root, world } = this.options
    await inTransaction(root, async (tx) => {
      await insertReply(tx, { requestId, body: JSON.stringify(answer), at: world.now() })
      await publish(tx, { topic: 'device.reply', key: requestId, at: world.now() })
    })
  }

  private handOn(device: DeviceRef, question: ServerMessage & { requestId: string }): void {
    const { links, world } = this.options
    this.handedOn.set(question.requestId, device)
    world.after(handedOnMs, () => this.handedOn.delete(question.requestId))
    links.send(device, question)
  }

  private async ask(device: DeviceRef, request: DeviceRequest, ms: number): Promise<DeviceReply | null> {
    const { world, links, root } = this.options
    const requestId = world.uuid()
    const message = { ...request, requestId } as ServerMessage
    const answer = new Promise<DeviceReply | null>((resolve) => {
      this.waiting.set(requestId, { device, askedAt: world.now(), resolve })
      world.after(ms, () => this.settle(requestId, null))
    })
    if (!links.send(device, message)) {
      await publish(root, { topic: 'device.request', key: device, payload: message, at: world.now() })
      if ((await findDeviceByPublicId(root, device))?.replicaId == null) this.settle(requestId, null)
    }
    return answer
  }

  private settle(requestId: string, answer: DeviceReply | null): void {
    this.waiting.get(requestId)?.resolve(answer)
    this.waiting.delete(requestId)
  }

  private giveUp(device: DeviceRef, unlinkedAt: number): void {
    for (const [requestId, question] of this.waiting)
      if (question.device === device && question.askedAt <= unlinkedAt) this.settle(requestId, null)
  }

  private async fetchReply(requestId: string): Promise<void> {
    const { root, log } = this.options
    try {
      const body = await findReply(root, requestId)
      if (body === null) return
      const parsed = reply.safeParse(JSON.parse(body))
      this.settle(requestId, parsed.success ? parsed.data : null)
    } catch (error) {
      log.warn({ err: error }, 'the answer of a device could not be read')
    }
  }
}
