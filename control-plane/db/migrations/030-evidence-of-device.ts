import type { Migration } from './migration.ts'

/** An index by which the evidence that a device has sent is measured, whichever runs it is about. */
export const evidenceOfDevice: Migration = {
  version: 30,
  name: 'evidence-of-device',
  async up(tx) {
    await tx.raw('create index run_evidence_device on run_evidence (device)')
  },
}
