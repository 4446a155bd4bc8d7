import type { Command } from './command.ts'
import contractTable from './command-table.json' with { type: 'json' }

/** All commands, sorted by name. */
export async function allCommands(): Promise<readonly Command[]> {
  const { localCommands } = await import('./local-commands.ts')
  return [...contractCommands, ...localCommands].sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** The output of from-contract.ts; a test compares it with the contract. */
export const contractCommands = contractTable as unknown as readonly Command[]
