import type { Migration } from '../migrate.ts'
import { foundation } from './001-foundation.ts'

/** In the order of their numbers; a released one is never changed. */
export const migrations: readonly Migration[] = [foundation]
