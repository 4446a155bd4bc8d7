import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { commandsFromContract } from '../cli/arguments/from-contract.ts'

/** Writes cli/arguments/command-table.json from the contract. Run it after a change of a route's command or schemas. */
const root = join(import.meta.dirname, '..')
const path = join(root, 'cli/arguments/command-table.json')
const byFirstWord = Map.groupBy(commandsFromContract(), ({ name }) => name.split(' ')[0]!)
writeFileSync(path, JSON.stringify(Object.fromEntries(byFirstWord)))
execFileSync(join(root, 'node_modules/.bin/oxfmt'), ['--write', path], { stdio: 'inherit' })
