import type { ConnectionStatus } from '../../../shared/api/connection-fields.ts'

/**
 * The states of a connection. Only this machine says what becomes of one (pure).
 *
 *   (none) ── begin ──> pending ── approve ──> active ── lapse ──> expired
 *      │                  │ ^ │                  ^ │                 │ │
 *      │          withdraw│ │ └ mismatch┐withdraw│ └──> revoked <────┘ │withdraw
 *      │                  v │           └────────┼────────^ │          │
 *      │             (removed)                   │          │          │
 *      │                    └── begin ───────────┼──────────┴──────────┤
 *      └──────────────────── connect ────────────┴──── connect ────────┘
 *
 * A pending one also lapses, and may begin anew: its sign-in before that is void. What is active begins nothing: it is answered
 * as it is. What is revoked may be withdrawn again.
 *
 * What may interleave: a callback with a revocation, a lapse or another beginning (the callback loses, as its sign-in is gone); a
 * renewal of a token with a revocation (the renewal loses, as the row is active no more); two renewals (`renewal.ts`). Each writes
 * the row by compare-and-set.
 */
export type ConnectionEvent =
  /** A person starts to sign in at the provider: by create, or by reauthorize. */
  | 'begin'
  /** A credential is there that nobody need approve: of a service without one, or a key. */
  | 'connect'
  /** The person approved, and the provider gave tokens for it. */
  | 'approve'
  /** Somebody else came back from the provider. */
  | 'mismatch'
  /** Somebody revokes it. */
  | 'withdraw'
  /** The time of the connection is over, or the provider refuses to renew it. */
  | 'lapse'

type Before = ConnectionStatus | 'none'
type After = ConnectionStatus | 'removed'

const table: Readonly<Record<Before, Readonly<Partial<Record<ConnectionEvent, After>>>>> = {
  none: { begin: 'pending', connect: 'active' },
  pending: { begin: 'pending', approve: 'active', mismatch: 'revoked', withdraw: 'removed', lapse: 'expired' },
  active: { withdraw: 'revoked', lapse: 'expired' },
  expired: { begin: 'pending', connect: 'active', withdraw: 'revoked' },
  revoked: { begin: 'pending', connect: 'active', withdraw: 'revoked' },
}

/** The state after an event; null: the event does not happen in this one. */
export const nextStatus = (before: Before, event: ConnectionEvent): After | null => table[before][event] ?? null
