import type { IncomingMessage } from 'node:http'
import type { World } from '../../shared/lib/world.ts'
import { version } from '../../shared/lib/version.ts'
import type { Outbound } from '../outbound/outbound.ts'
import { OutboundError } from '../outbound/outbound-error.ts'
import type { ClaimedDelivery } from '../resources/webhooks/delivery-store.ts'
import type { AttemptEnd } from '../resources/webhooks/rules.ts'
import { signatureOf } from '../resources/webhooks/secret.ts'

/** The time for a whole attempt, from the name of the host to the answer. */
const attemptMs = 10_000
/** The beginning of an answer that is read and shown. */
const shownBytes = 1024

export interface Attempted {
  end: AttemptEnd
  durationMs: number
  responseBody: string | null
}

/** Posts a delivery once. Follows no redirect, and reads little of the answer. Never fails; null: `leaving` was aborted before the answer came. */
export async function sendDelivery(
  { id, eventId, eventType, payload }: ClaimedDelivery,
  to: { url: string; secrets: readonly string[] },
  { outbound, world, leaving }: { outbound: Pick<Outbound, 'send'>; world: World; leaving: AbortSignal },
): Promise<Attempted | null> {
  const began = world.monotonic()
  const took = () => Math.round(world.monotonic() - began)
  const ending = new AbortController()
  const stopTimer = world.after(attemptMs, () =>
    ending.abort(new OutboundError('timed_out', `No answer came within ${attemptMs / 1_000} s.`)),
  )
  const leave = () => ending.abort(leaving.reason)
  if (leaving.aborted) leave()
  leaving.addEventListener('abort', leave, { once: true })
  try {
    const body = Buffer.from(payload)
    const headers = {
      'content-type': 'application/json',
      'content-length': body.length,
      'user-agent': `svc-webhooks/${version}`,
      accept: '*/*',
      'accept-encoding': 'identity',
      'svc-event-id': eventId,
      'svc-event-type': eventType,
      'svc-delivery-id': id,
      'svc-signature': signatureOf(payload, { secrets: to.secrets, now: world.now() }),
    }
    const answer = await outbound.send(new URL(to.url), { method: 'POST', headers, body }, ending.signal)
    const status = answer.statusCode ?? 0
    const responseBody = await beginningOf(answer, ending.signal)
    return { end: { status }, durationMs: took(), responseBody }
  } catch (error) {
    if (leaving.aborted) return null
    const trouble = error instanceof OutboundError ? error.message : 'The address cannot be asked.'
    return { end: { trouble }, durationMs: took(), responseBody: null }
  } finally {
    stopTimer()
    leaving.removeEventListener('abort', leave)
    ending.abort()
  }
}

/** The first bytes of the body as text. The status counts once it is there, however the body ends. */
async function beginningOf(answer: IncomingMessage, signal: AbortSignal): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  // It may break off after it was left.
  answer.on('error', () => undefined)
  try {
    for await (const chunk of answer.iterator({ destroyOnReturn: true }) as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      size += chunk.length
      if (size >= shownBytes || signal.aborted) break
    }
  } catch {
    // What came of it is shown.
  } finally {
    answer.destroy()
  }
  // NUL is nothing that PostgreSQL stores.
  return Buffer.concat(chunks).subarray(0, shownBytes).toString('utf8').replaceAll('\0', '')
}
