import type { ConnectionStatus } from '../../../shared/api/connection-fields.ts'
import type { Service } from '../../catalog/services.ts'
import type { ConnectionRow } from './store.ts'

/** Returns the status of the row by now: its time may be over before a sweep has written so. */
export const statusAt = ({ status, lapsesAt }: Pick<ConnectionRow, 'status' | 'lapsesAt'>, now: number) =>
  lapsesAt !== null && lapsesAt <= now ? ('expired' satisfies ConnectionStatus) : status

/** Returns the reason why a connection is expired whose time is over. */
export function reasonOfLapse({ status }: Pick<ConnectionRow, 'status'>): string {
  return status === 'pending'
    ? 'Nobody ended the sign-in at the provider within ten minutes.'
    : 'The access token has ended, and the provider gave nothing to renew it with.'
}

export type KeyFields = Readonly<Record<string, string>>
/** The flaws by the name of the field, in words without its value. */
type Flaws = Readonly<Record<string, string>>

/**
 * The values of a key, without the white space around them that comes with pasting; of fields that may be left out, only those that
 * were given. Or what is wrong with each of them.
 */
export function readKeyFields(service: Service, given: KeyFields): { values: KeyFields } | { flaws: Flaws } {
  const fields = service.fields ?? []
  const values: Record<string, string> = {}
  const flaws: Record<string, string> = {}
  for (const name of Object.keys(given))
    if (!fields.some((field) => field.name === name)) flaws[name] = 'is no field of this service'
  for (const { name, required, pattern } of fields) {
    const value = Object.hasOwn(given, name) ? given[name]!.trim() : ''
    if (value === '' && !required) continue
    if (value === '') flaws[name] = 'is required'
    // The value is sent in a header.
    else if (!/^[\x20-\x7e]+$/.test(value)) flaws[name] = 'holds other characters than keys do'
    else if (pattern !== undefined && !new RegExp(pattern, 'u').test(value))
      flaws[name] = 'does not have the form of such a key'
    else values[name] = value
  }
  return Object.keys(flaws).length > 0 ? { flaws } : { values }
}

/** A service without a required field is connected to without any. */
export const needsFields = ({ fields = [] }: Service): boolean => fields.some(({ required }) => required)

/** A token is renewed this long before its end: a third of its time, at most five minutes. */
export const renewalAt = ({ obtainedAt, expiresAt }: { obtainedAt: number; expiresAt: number }): number =>
  expiresAt - Math.min(5 * 60_000, Math.max(0, (expiresAt - obtainedAt) / 3))
