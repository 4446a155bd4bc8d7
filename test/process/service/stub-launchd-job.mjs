// Starts the job of a plist, as launchd would, and prints its pid.
import { spawn } from 'node:child_process'
import { openSync, readFileSync } from 'node:fs'
import { parse } from 'plist'

const job = parse(readFileSync(process.argv[2], 'utf8'))
const output = openSync(job.StandardOutPath, 'a')
const [program, ...rest] = job.ProgramArguments
const child = spawn(program, rest, {
  detached: true,
  cwd: job.WorkingDirectory,
  stdio: ['ignore', output, output],
  env: { SHELL: '/bin/sh', ...job.EnvironmentVariables },
})
process.stdout.write(`${child.pid}\n`)
child.unref()
