export type OutboundReason =
  /** The address is private, of this machine, or has a form that is never asked. */
  | 'refused_address'
  | 'not_https'
  | 'unresolvable'
  /** Nobody answers, or the answer breaks off or is no HTTP that is understood. */
  | 'unreachable'
  | 'timed_out'
  | 'too_large'
  | 'too_many_redirects'

/**
 * The reason why a request to an address that somebody named was not made, or did not end well. Its message may be shown to that person.
 */
export class OutboundError extends Error {
  override name = 'OutboundError'
  readonly reason: OutboundReason

  constructor(reason: OutboundReason, message: string, options?: ErrorOptions) {
    super(message, options)
    this.reason = reason
  }
}
