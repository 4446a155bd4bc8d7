/** Durations and sizes both ends of a link agree on. Milliseconds and bytes. */
export const linkLimits = {
  protocol: 1,
  /** A device that has not said hello by then is cut off. */
  helloMs: 5_000,
  /** Size limit of the hello frame, the only one accepted before the welcome. */
  helloBytes: 16 * 1024,
  /** The largest frame after hello: a frame of events or a change-set. */
  frameBytes: 16 * 1024 * 1024,
  headerBytes: 64 * 1024,
  /** The largest message after hello: far more than the report of a run's end or the state of all folders takes. */
  messageBytes: 1024 * 1024,
  /** The longest line of an event, without its newline; see `lineWithinBound`. A tool's input has at most half of it. */
  lineBytes: 2 * 1024 * 1024,
  heartbeatMs: 25_000,
  leaseMs: 90_000,
  offerMs: 10_000,
  pingMs: 20_000,
  /** Silence on the socket after which an end gives it up; pings keep a healthy one alive. */
  deadMs: 45_000,
  reconnectMinMs: 1_000,
  reconnectMaxMs: 60_000,
  /** A link that lived this long resets the reconnect delay. */
  stableMs: 60_000,
  tokenRotateMs: 30 * 24 * 3_600_000,
  retireMs: 7 * 24 * 3_600_000,
  /** Events of one run that may be in flight without an acknowledgement. */
  windowBytes: 4 * 1024 * 1024,
  /** The size that a frame's body aims at. */
  frameTargetBytes: 256 * 1024,
  /** Far more events than such a body has room for: the server reads a frame as a whole. */
  frameEvents: 16 * 1024,
} as const

/**
 * The silence after which an end of the link gives up. It is a little below `deadMs`, so that even a busy machine keeps
 * to `deadMs`.
 */
export const silenceLimitMs = ({ pingMs, deadMs }: { pingMs: number; deadMs: number }): number => deadMs - pingMs / 20

/** The time that each phase of a run may last. */
export const runLimits = {
  dispatchMs: 10 * 60_000,
  gateMs: 24 * 3_600_000,
  silentMs: 60 * 60_000,
  firstEventMs: 5 * 60_000,
  noProgressMs: 60 * 60_000,
  runMs: (23 * 60 + 55) * 60_000,
  claimExpiredMs: (23 * 60 + 50) * 60_000,
  toolCalls: 1_000,
  /** The calls after which the agent of a run in a sandbox is warned, and the time that one may take. */
  warnAtCalls: 800,
  callMs: 5 * 3_600_000,
} as const

/** WebSocket close codes of the link. 4xxx codes with `fatal` end the daemon with status 78; the rest reconnect. */
export const closeCodes = {
  going_away: { code: 4000, fatal: false, text: 'The server is restarting; connect again.' },
  hello_expected: { code: 4001, fatal: false, text: 'No hello came in time, or another frame came before it.' },
  malformed_frame: { code: 4002, fatal: false, text: 'A frame could not be read.' },
  frame_too_large: { code: 4003, fatal: false, text: 'A frame was larger than the link allows.' },
  silent: { code: 4004, fatal: false, text: 'Nothing was heard from the device for too long.' },
  auth_failed: { code: 4010, fatal: true, text: 'The device token is not known.' },
  revoked: { code: 4011, fatal: true, text: 'The device was removed, or its token revoked.' },
  retired: { code: 4012, fatal: true, text: 'The device was away for more than seven days and is retired.' },
  duplicate_device: { code: 4013, fatal: true, text: 'Another daemon is connected with this identity.' },
  protocol_unsupported: {
    code: 4014,
    fatal: true,
    text: 'The server does not speak this version of the link protocol.',
  },
} as const
export type CloseName = keyof typeof closeCodes

export function closeNameOf(code: number): CloseName | null {
  for (const [name, entry] of Object.entries(closeCodes)) if (entry.code === code) return name as CloseName
  return null
}
