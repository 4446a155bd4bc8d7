/** The ends of a request of a sandbox: one that `failed` was let through and did not reach the host. */
export const networkDecisions = ['allowed', 'refused', 'failed'] as const
export type NetworkDecision = (typeof networkDecisions)[number]

export const networkLimits = {
  /** Hosts told of one run, each with what became of the requests to it; all further ones are told as one. */
  hosts: 200,
} as const
/** Words that stand in place of a host: this server, one of those that are not told each, and none that could be read. */
export const otherHosts = { server: 'svc', further: '*', unreadable: '-' } as const
