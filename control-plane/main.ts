#!/usr/bin/env node
import { nodeTrouble } from './node-version.ts'

// Checked before anything native is loaded: under an old Node the addons crash instead of failing.
const trouble = nodeTrouble(process.versions.node)
if (trouble) {
  process.stderr.write(`${trouble}\n`)
  process.exit(78)
}
// An `await` cannot stand here: the bundle is CommonJS (scripts/build.ts).
void import('./command.ts').then(({ runCommand }) => runCommand(process.argv.slice(2)))
