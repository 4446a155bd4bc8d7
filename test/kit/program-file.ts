import { join } from 'node:path'
import { inject } from 'vitest'
import type { Program } from '../../shared/lib/program-file.ts'

/** The folder with this checkout's bundled programs. A program that a test starts is told by a variable where they lie. */
const ownPrograms = (): string => process.env['SVC_TEST_PROGRAMS'] ?? inject('programs')

/** The program's `main`, bundled as it is published. `programs`: the folder of other ones than this checkout's. */
export const programFile = (program: Program, programs = ownPrograms()): string => join(programs, program, 'main.js')
