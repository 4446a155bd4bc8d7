import type { World } from '../shared/lib/world.ts'
import type { Command, ParsedArguments } from './arguments/command.ts'
import type { CliEnvironment } from './machine/environment.ts'
import type { Client } from './http/client.ts'
import type { Output } from './output/output.ts'
import type { Values } from './arguments/values.ts'

/** What a command gets to do its work. */
export interface CommandContext {
  command: Command
  values: Values
  /** As they were given, by name. */
  positionals: ParsedArguments['positionals']
  out: Output
  env: CliEnvironment
  world: World
  cwd: string
  /** A person sits at a terminal; false within a run. */
  isInteractive: boolean
  /** Standard input to its end. */
  readInput: () => Promise<Buffer>
  /** A client that calls as the run's agent or with the login. Fails with exit status 4 without one. */
  connect(): Promise<Client>
}

/** Does the work of a command and gives the exit status. */
export type Flow = (context: CommandContext) => Promise<number>
