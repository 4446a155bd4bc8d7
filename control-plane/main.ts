#!/usr/bin/env node
import fs from 'node:fs'
import { fitLaunchd } from '../shared/lib/launchd-words.ts'
import { nodeTrouble } from './node-version.ts'
import { handToService } from './service/hand-over.ts'

const line = process.argv.slice(2)
const isUnderLaunchd = line.slice(-2).join(' ') === '--service launchd'
if (isUnderLaunchd) fitLaunchd(fs)
// Checked before anything native is loaded: under an old Node the addons crash instead of failing.
const trouble = nodeTrouble(process.versions.node)
if (trouble) {
  process.stderr.write(`${trouble}\n`)
  process.exit(78)
}
const handed = handToService(line)
if (handed !== null) process.exit(handed)
// An `await` cannot stand here: the bundle is CommonJS (scripts/build.ts).
void import('./command.ts').then(({ runCommand }) => runCommand(isUnderLaunchd ? line.slice(0, -2) : line))
