/** The headers that the proxy adds to the requests of the harness. Values are kept in memory only. */
export interface Credential {
  /** Rejects with ProxyError where there is none to be had. */
  headers(): Promise<Readonly<Record<string, string>>>
  /**
   * Gets another credential after the server refused the last one; `headers` returns it from then on. False: there is no other. Absent: the
   * credential is a secret, of which there is only one.
   */
  renew?(): Promise<boolean>
}

/** A request that cannot be passed on. The message is for the model and for people, and holds no value. */
export class ProxyError extends Error {
  readonly status: number

  constructor(message: string, status = 502) {
    super(message)
    this.status = status
  }
}
