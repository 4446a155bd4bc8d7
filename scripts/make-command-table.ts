import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { commandsFromContract, fieldsFromContract, formsFromContract } from '../cli/arguments/from-contract.ts'

/**
 * Writes the commands of the contract to cli/arguments: all of each to command-table.json, names and summaries to
 * command-heads.json, the fields of their records to command-fields.json, and what their flags accept to command-forms.json. Run it after a change of a route's command or schemas.
 */
const root = join(import.meta.dirname, '..')
const commands = commandsFromContract()
const byFirstWord = Map.groupBy(commands, ({ name }) => name.split(' ')[0]!)
write('command-table.json', Object.fromEntries(byFirstWord))
write(
  'command-heads.json',
  commands.map(({ name, summary }) => ({ name, summary })),
)
write('command-fields.json', fieldsFromContract())
write('command-forms.json', formsFromContract())

function write(name: string, value: unknown): void {
  const path = join(root, 'cli/arguments', name)
  writeFileSync(path, JSON.stringify(value))
  execFileSync(join(root, 'node_modules/.bin/oxfmt'), ['--write', path], { stdio: 'inherit' })
}
