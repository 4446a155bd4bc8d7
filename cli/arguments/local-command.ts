import type { Command } from './command.ts'
import type { CommandFlag } from '../../shared/api/command.ts'

/** A command that is no route of the API. */
export const local = (command: Pick<Command, 'name' | 'summary' | 'example'> & Partial<Command>): Command => ({
  positionals: [],
  flags: [],
  route: null,
  ...command,
})

export const flag = (name: string, description: string, more: Partial<CommandFlag> = {}): CommandFlag => ({
  name,
  target: null,
  kind: 'string',
  description,
  ...more,
})
export const yes = { kind: 'boolean' } as const
