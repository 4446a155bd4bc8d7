import { compressQuickly } from '../dialect.ts'
import type { Migration } from './migration.ts'

/** Bodies of frames are most of the bytes that a server stores. */
export const frameCompression: Migration = {
  version: 12,
  name: 'frame-compression',
  async up(tx) {
    await compressQuickly(tx, 'run_frames', 'body')
  },
}
