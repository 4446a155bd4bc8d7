import type { Command } from './command.ts'
import contractTable from './command-table.json' with { type: 'json' }

/** The output of from-contract.ts by the first word of the names; a test compares it with the contract. */
const table = contractTable as unknown as Readonly<Record<string, readonly Command[]>>

/** The commands of the contract whose names begin with the word. The bundle reads each group when it is asked for (scripts/build.ts). */
export const contractCommandsOf = (word: string): readonly Command[] => (Object.hasOwn(table, word) ? table[word]! : [])

export const contractCommands = (): readonly Command[] => Object.values(table).flat()

/** The others. */
export const localCommands = async (): Promise<readonly Command[]> =>
  (await import('./local-commands.ts')).localCommands

/** All commands, sorted by name. */
export async function allCommands(): Promise<readonly Command[]> {
  return [...contractCommands(), ...(await localCommands())].sort((a, b) => (a.name < b.name ? -1 : 1))
}
