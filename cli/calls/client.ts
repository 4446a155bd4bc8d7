import type { IncomingMessage } from 'node:http'
import type { ApiCall, ApiReply } from './api-call.ts'

/** As whom svc calls which server. */
export interface Caller {
  /** Without a slash at its end. */
  server: string
  /** Empty while nobody is signed in. */
  token: string
  source: 'run' | 'login'
  /** Sent with each call when another workspace was named. */
  workspaceId: string | null
  /** The workspace the login is bound to; null: only the server knows it. */
  ownWorkspaceId: string | null
}

export interface Client {
  readonly caller: Caller
  /** Fails with ApiFailure on a status of 300 and above, and when a good status comes without the server's JSON. */
  call(call: ApiCall): Promise<ApiReply>
  /** Returns replies of any status. A good one without the server's JSON fails as in `call`. */
  send(call: ApiCall): Promise<ApiReply>
  /** Returns the open answer of a stream. Fails with ApiFailure as `call` does. Does not retry. */
  stream(call: ApiCall, signal: AbortSignal): Promise<IncomingMessage>
}
