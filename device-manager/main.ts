import { nodeTrouble } from './node-version.ts'

// Checked before anything native is loaded: under an old Node the addons crash instead of failing.
const trouble = nodeTrouble(process.versions)
if (trouble) {
  process.stderr.write(`${trouble}\n`)
  process.exit(78)
}
const { runDaemon } = await import('./run-daemon.ts')
const [command, ...rest] = process.argv.slice(2)
if (command === 'run' && rest.length === 0) await runDaemon()
else if (command === '--version') process.stdout.write(`${(await import('../shared/lib/version.ts')).version}\n`)
else {
  process.stderr.write(
    'usage: svc-device run\nThe daemon of this device; `svc device connect` sets it up and starts it.\n',
  )
  process.exit(command === undefined || command === '--help' ? 0 : 2)
}
