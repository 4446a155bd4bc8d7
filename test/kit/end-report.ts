import type { EndReport } from '../../shared/device/protocol.ts'

/** Returns what a device reports of a run that has completed and told nothing, but for what is given. */
export const endReport = (told: Partial<EndReport> = {}): EndReport => ({
  exitReason: 'completed',
  exitCode: 0,
  signal: null,
  message: null,
  eventCount: 0,
  logHash: '',
  gapBytes: 0,
  usage: null,
  toolCallCount: 0,
  sessionId: null,
  harnessVersion: null,
  forced: false,
  ...told,
})
