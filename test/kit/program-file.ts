import { join } from 'node:path'
import { inject } from 'vitest'
import type { Program } from '../../shared/lib/program-file.ts'

/** The folder with this checkout's bundled programs. A program that a test starts is told by a variable where they lie. */
const ownPrograms = (): string => process.env['SVC_TEST_PROGRAMS'] ?? inject('programs')

/** The program's `main`, bundled as it is published. `programs`: the folder of other ones than this checkout's. */
export const programFile = (program: Program, programs = ownPrograms()): string => join(programs, program, 'main.js')

/** A database with this checkout's schema. null: in a program that a test starts, or when the migrations failed. */
export const migratedImage = (): string | null =>
  process.env['SVC_TEST_PROGRAMS'] === undefined ? inject('databases').sqliteImage : null
