import { ZodError } from 'zod'
import { readHappening, type Happening } from './events.ts'

/** The body of a delivery with a valid signature. */
export interface ReceivedDelivery {
  event: string
  contentType: string
  bytes: Uint8Array
}

export type DeliveryRead =
  | { kind: 'read'; happening: Happening | null }
  | { kind: 'not_json' }
  | { kind: 'not_understood'; fields: { path: string; message: string }[] }

/** Reads the event of a delivery. Large deliveries take a while, so a worker reads them (`control-plane/costly`). */
export function readDelivery({ event, contentType, bytes }: ReceivedDelivery): DeliveryRead {
  const payload = payloadOf(bytes, contentType)
  if (payload === undefined) return { kind: 'not_json' }
  try {
    return { kind: 'read', happening: readHappening(event, payload) }
  } catch (error) {
    if (!(error instanceof ZodError)) throw error
    const fields = error.issues.slice(0, 20).map(({ path, message }) => ({ path: path.join('.'), message }))
    return { kind: 'not_understood', fields }
  }
}

/** Reads JSON, by itself or as the field `payload` of a form: GitHub lets people choose. */
function payloadOf(bytes: Uint8Array, contentType: string): unknown {
  const text = new TextDecoder().decode(bytes)
  const isForm = /^application\/x-www-form-urlencoded\b/i.test(contentType)
  try {
    return JSON.parse(isForm ? (new URLSearchParams(text).get('payload') ?? '') : text)
  } catch {
    return undefined
  }
}
