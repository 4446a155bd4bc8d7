import type { ThrowAwayPostgres } from '../postgres.ts'
import type { Result } from './measure.ts'

/** Says what a benchmark gets to work with. */
export interface Context {
  /** A folder of this run, removed at its end. */
  scratch: string
  /** The compiled programs, as they are published. */
  dist: string
  rounds: number
  large: boolean
  say(text: string): void
  /** A PostgreSQL with fsync on, or null where it is not installed. */
  postgres(): Promise<ThrowAwayPostgres | null>
}

export interface Bench {
  name: string
  /** Says what is measured, in a sentence. */
  about: string
  run(context: Context): Promise<Result[]>
}
