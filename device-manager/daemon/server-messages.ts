import type { RunId } from '../../shared/lib/ids.ts'
import type { ClaimState, ServerMessage } from '../../shared/device/protocol.ts'
import type { LinkClient } from '../link/client.ts'
import type { Forwarder } from '../link/forwarder.ts'
import type { Log } from '../log/log.ts'
import type { Supervisor } from '../run/supervisor.ts'

/** `folders` are those to be watched; undefined where the control plane does not say. */
export type DeviceSettings = Omit<ServerMessage & { type: 'config.changed' }, 'type'>

export interface MessageContext {
  supervisor: Supervisor
  forwarder: Forwarder
  link: LinkClient
  log: Log
  claimState(): ClaimState
  /** Why no run can be written down; null: it can. */
  journalTrouble(): 'disk_full' | 'spool_unavailable' | null
  /** The claim state is told even if it is what was told last: the control plane took another one from a refusal. */
  tellClaimState(): void
  /** Reports what changed. */
  probeHarnesses(): Promise<unknown>
  configure(config: DeviceSettings): void
  revoked(reason: string): void
}

/** Hands each message of the control plane to the part that owns its subject. */
export function receiveMessage(context: MessageContext, message: ServerMessage): void {
  const { supervisor, forwarder } = context
  const ofRun = (run: { runId: RunId; fence: number }, event: Parameters<Supervisor['handle']>[1]) => {
    if (supervisor.find(run.runId)?.fence === run.fence) supervisor.handle(run.runId, event)
  }
  switch (message.type) {
    case 'run.offer':
      return receiveOffer(context, message)
    case 'run.start':
      return supervisor.starts.receive(message)
    case 'run.withdrawn':
      return ofRun(message, { type: 'withdrawn' })
    case 'run.cancel':
      return ofRun(message, {
        type: 'cancel_received',
        stop: { exitReason: message.exitReason, message: message.reason },
      })
    case 'run.input':
      return supervisor.input(message)
    case 'ack':
      return forwarder.acknowledged(message)
    case 'run.closed':
      return ofRun(message, { type: 'closed' })
    case 'run.refused':
      ofRun(message, { type: 'given_up' })
      return forwarder.refused(message)
    case 'change_set.get':
      return supervisor.changeSet(message)
    case 'credential':
      return passCredential(supervisor, message)
    case 'folder.check':
      return void checkFolder(context, message).catch((error: unknown) => {
        context.log.warn({ err: error }, 'a folder could not be looked at')
      })
    case 'readiness.get':
      return void context.probeHarnesses()
    case 'config.changed':
      return context.configure(message)
    case 'revoked':
      return context.revoked(message.reason)
    case 'welcome':
    case 'heartbeat.ack':
      return
  }
}

function receiveOffer(context: MessageContext, message: ServerMessage & { type: 'run.offer' }): void {
  const { supervisor, forwarder, link } = context
  const { runId, fence, spec } = message
  const decline = (reason: 'capacity' | 'draining' | 'disk_full' | 'spool_unavailable' | 'already_running') => {
    link.send({ type: 'run.declined', runId, fence, reason, message: null })
    context.tellClaimState()
  }
  const held = supervisor.find(runId)
  // Overtaken by a later offer of the same run.
  if (held && held.fence > fence) return
  if (held && held.fence === fence) return supervisor.handle(runId, { type: 'offered', spec, fence, at: 0 })
  if (held) {
    // An older lease of the same run: its tree must be gone before a new one may start.
    supervisor.handle(runId, { type: 'given_up' })
    if (supervisor.find(runId)) return decline('already_running')
  }
  const { reason } = context.claimState()
  if (reason !== null && reason !== 'paused') return decline(reason)
  // Before the offer is taken: what a host that ends at once has to tell is sent, too.
  forwarder.expect({ runId, fence })
  if (supervisor.offer({ spec, fence })) return
  forwarder.forget(runId)
  decline(context.journalTrouble() ?? 'disk_full')
}

/** It is kept nowhere here. */
function passCredential(supervisor: Supervisor, message: ServerMessage & { type: 'credential' }): void {
  const { runId, fence, requestId, answer } = message
  if (supervisor.starts.answered(message)) return
  if (supervisor.find(runId)?.fence === fence) supervisor.hosts.send(runId, { type: 'credential', requestId, answer })
}

async function checkFolder({ link }: MessageContext, message: ServerMessage & { type: 'folder.check' }): Promise<void> {
  // Loaded when it is needed: it brings what compares working trees.
  const { checkFolder: look } = await import('../folders/check.ts')
  const result = await look(message.rootPath)
  link.send({ type: 'folder.result', requestId: message.requestId, result })
}
