import type { BodyRooms } from '../http/body-room.ts'
import type { Limiter } from '../http/limits.ts'
import type { FinishDependencies } from '../resources/connections/steps/finish-sign-in.ts'
import type { OidcClient } from './oidc/client.ts'

/** The time that a session lasts: in total after signing in, and without being used. */
export interface SessionLimits {
  totalMs: number
  idleMs: number
}

/** The dependencies of signing in, built once when the server is assembled. */
export interface SignInDependencies extends FinishDependencies {
  limiter: Limiter
  rooms: BodyRooms
  /** The address of this server without a slash at its end; null: the address by which a caller reached the server. */
  publicUrl: string | null
  isHttps: boolean
  sessions: SessionLimits
  /** null: no issuer is configured. */
  oidc: OidcClient | null
}
