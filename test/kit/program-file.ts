import { join } from 'node:path'
import { inject } from 'vitest'
import type { Program } from '../../shared/lib/program-file.ts'

/** The program's `main`, bundled as it is published. */
export const programFile = (program: Program): string => join(inject('programs'), program, 'main.js')
