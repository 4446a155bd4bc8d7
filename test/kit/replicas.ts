import { inject } from 'vitest'
import { isLong } from './forms.ts'

/**
 * What neither the database nor a second server decides, such as a limit of time, is tried on replicas in the long form of the
 * tests alone: the project `fast` shows it.
 */
export const isTriedHere = isLong || inject('replicas') < 2
