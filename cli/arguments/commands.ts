import type { Command } from './command.ts'
import contractTable from './command-table.json' with { type: 'json' }

/** The output of from-contract.ts by the first word of the names; a test compares it with the contract. */
const table = contractTable as unknown as Readonly<Record<string, readonly Command[]>>

/** The commands of the contract whose names begin with the word. The bundle parses each group when it is asked for (scripts/build.ts). */
export const contractCommandsOf = (word: string): readonly Command[] => (Object.hasOwn(table, word) ? table[word]! : [])

export const contractCommands = (): readonly Command[] => Object.values(table).flat()

/** The commands that are not one call of the API. */
export const loadLocalCommands = async (): Promise<readonly Command[]> =>
  (await import('./local-commands.ts')).localCommands

/** All commands, sorted by name. */
export const allCommands = async (): Promise<readonly Command[]> =>
  sorted([...contractCommands(), ...(await loadLocalCommands())])

/** A command as lists of them show it. */
export type ListedCommand = Pick<Command, 'name' | 'summary' | 'hidden'>

/** The names and summaries of all commands, sorted by name, for which the table need not be parsed. */
export async function listedCommands(): Promise<readonly ListedCommand[]> {
  const { default: heads } = await import('./command-heads.json', { with: { type: 'json' } })
  return sorted<ListedCommand>([...heads, ...(await loadLocalCommands())])
}

const sorted = <C extends ListedCommand>(commands: readonly C[]): readonly C[] =>
  commands.toSorted((a, b) => (a.name < b.name ? -1 : 1))
