import type { Command } from './command.ts'
import contractTable from './command-table.json' with { type: 'json' }
import { localCommands } from './local-commands.ts'

/** All commands, sorted by name. */
export function allCommands(): readonly Command[] {
  return [...contractCommands, ...localCommands].sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** What from-contract.ts made; a test holds it against the contract. */
export const contractCommands = contractTable as unknown as readonly Command[]
