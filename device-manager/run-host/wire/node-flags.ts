/**
 * What a run host is started for: to stand by, for a run that waits already, or so that Node keeps what it compiled of it. One that stands by
 * warms up, which would only delay a run that waits.
 */
export const hostPurposes = ['spare', 'run', 'rehearsal'] as const
export type HostPurpose = (typeof hostPurposes)[number]

/**
 * Flags of the Node that runs a run host. Young objects of a flood would otherwise fill 130 MB, as V8 gives them more room the
 * more memory the machine has, and what is read is let go only when they are collected: 2 MB for each half keeps a host below 155 MB,
 * with no more processor time. With 8 MB it takes 165 to 185 MB.
 */
export const hostNodeFlags: readonly string[] = ['--disable-warning=ExperimentalWarning', '--max-semi-space-size=2']
