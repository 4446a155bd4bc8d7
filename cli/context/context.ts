import type { World } from '../../shared/lib/world.ts'
import type { Command, ParsedArguments } from '../arguments/command.ts'
import type { CliEnvironment } from '../machine/environment.ts'
import type { Client } from '../calls/client.ts'
import type { Output } from '../output/output.ts'
import type { Values } from '../arguments/values.ts'

/** Everything a command needs for its work. start.ts makes it. */
export interface CommandContext {
  command: Command
  values: Values
  /** The positionals as they were given, by name. */
  positionals: ParsedArguments['positionals']
  /** The names of the flags in the order in which they were given, repeated ones as often. */
  givenFlags: readonly string[]
  out: Output
  env: CliEnvironment
  world: World
  /** Returns the absolute path of a file that is named in the command line. Fails for a relative one in a folder that is gone. */
  resolvePath: (given: string) => string
  /** Whether a person sits at a terminal; false within a run. */
  isInteractive: boolean
  /** Reads standard input to its end. */
  readInput: () => Promise<Buffer>
  /**
   * Returns a client that calls as the run's agent or with the login. Fails with exit status 4 when there is neither.
   */
  connect(): Promise<Client>
}

/** Does the work of a command. Returns the exit status when it is another than 0. */
export type Flow = (context: CommandContext) => Promise<number | void>
