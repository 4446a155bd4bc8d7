/**
 * What a run host is started for: to stand by, for a run that waits already, or so that Node keeps what it compiled of it. One that stands by
 * warms up, which would only delay a run that waits.
 */
export const hostPurposes = ['spare', 'run', 'rehearsal'] as const
export type HostPurpose = (typeof hostPurposes)[number]

/**
 * Flags of the Node that runs a run host. Young objects of a flood would otherwise fill 130 MB, as V8 gives them more room the
 * more memory the machine has; 8 MB for each half keeps a host below 160 MB without slowing it.
 */
export const hostNodeFlags: readonly string[] = ['--disable-warning=ExperimentalWarning', '--max-semi-space-size=8']
