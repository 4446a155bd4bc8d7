import { join } from 'node:path'
import { inject } from 'vitest'
import type { Program } from '../../shared/lib/program-file.ts'

/** The program's `main`, bundled as it is published. A program that a test starts is told by a variable where they lie. */
export const programFile = (program: Program): string =>
  join(process.env['SVC_TEST_PROGRAMS'] ?? inject('programs'), program, 'main.js')
