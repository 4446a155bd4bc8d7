#!/usr/bin/env node
import fs from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { compileForMemory } from './start/compiler.ts'
import { nodeTrouble } from './start/node-version.ts'
import { missingHomeTrouble } from './setup/account.ts'
import { fitLaunchd } from '../shared/lib/launchd-words.ts'
import { sandboxPlaces } from '../shared/runs/sandbox-places.ts'

const [command, ...rest] = process.argv.slice(2)
const service = rest.length === 2 && rest[0] === '--service' ? serviceNamed(rest[1]) : null
const isRehearsal = rest.length === 1 && rest[0] === '--rehearse'
if (service === 'launchd') fitLaunchd(fs)
// Checked before anything native is loaded: under an old Node the addons crash instead of failing.
const trouble = nodeTrouble(process.versions) ?? missingHomeTrouble()
if (trouble) {
  process.stderr.write(`${trouble}\n`)
  process.exit(78)
}
// No `await` here: it is written as CommonJS (scripts/build.ts).
void main()

async function main(): Promise<void> {
  if (command === 'run' && (rest.length === 0 || service !== null)) {
    // The daemon is idle for most of its life: its heap for young objects stays small, which saves about 8 MB.
    setFlagsFromString('--semi-space-growth-factor=1')
    compileForMemory()
    await (await import('./start/run-daemon.ts')).runDaemon(service)
  } else if (command === 'sandbox' && (rest.length === 0 || isRehearsal)) {
    process.getBuiltinModule('node:module').enableCompileCache(sandboxPlaces.compiled)
    await (await import('./start/run-sandbox.ts')).runSandbox({ isRehearsal })
  } else if (command === 'service') {
    const { realWorld } = await import('../shared/lib/world.ts')
    const { thisSystem } = await import('./service/context.ts')
    const { runServiceCommand } = await import('./service/command.ts')
    const { reply, exitStatus } = await runServiceCommand(rest, thisSystem(realWorld))
    process.stdout.write(`${JSON.stringify(reply)}\n`)
    process.exitCode = exitStatus
  } else if (command === 'check') {
    await (await import('./start/check.ts')).checkProgram()
  } else if (command === '--version') {
    process.stdout.write(`${(await import('../shared/lib/version.ts')).version}\n`)
  } else {
    process.stderr.write(
      'usage: svc-device run\n       svc-device sandbox [--rehearse]\n       svc-device check\n       svc-device service install|uninstall|start|stop|restart|status [--system --user ACCOUNT]\nThe daemon of this device; `svc device connect` sets it up and starts it.\n',
    )
    process.exit(command === undefined || command === '--help' ? 0 : 2)
  }
}

function serviceNamed(name: string | undefined): 'systemd' | 'launchd' | null {
  return name === 'systemd' || name === 'launchd' ? name : null
}
