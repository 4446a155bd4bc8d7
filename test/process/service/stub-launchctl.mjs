// Stands for launchctl on the PATH of a test, as stub-systemctl.mjs does for systemctl. `bootout` answers before the job
// has ended, as the real one does.
import { spawn } from 'node:child_process'
import { appendFileSync, existsSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'plist'

const dir = process.env.STUB_DIR
const args = process.argv.slice(2)
appendFileSync(join(dir, 'calls'), `launchctl ${args.join(' ')}\n`)
const [verb, target = ''] = args
const failure = join(dir, 'fail', verb)
if (existsSync(failure)) {
  process.stderr.write(readFileSync(failure, 'utf8'))
  process.exit(5)
}

const loaded = join(dir, 'loaded.plist')
const pidFile = join(dir, 'pid')
const leaving = join(dir, 'leaving')
const disabled = join(dir, 'disabled')
const isAlive = (pid) => {
  try {
    return !/^State:\s*Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}
const pid = Number(existsSync(pidFile) ? readFileSync(pidFile, 'utf8') : 0)
const isRunning = pid > 0 && isAlive(pid)
if (existsSync(leaving) && !isRunning) for (const path of [loaded, leaving, pidFile]) rmSync(path, { force: true })

function fail(status, text) {
  process.stderr.write(`${text}\n`)
  process.exit(status)
}

function start() {
  if (isRunning) return
  const job = parse(readFileSync(loaded, 'utf8'))
  const output = openSync(job.StandardOutPath, 'a')
  const [program, ...rest] = job.ProgramArguments
  const child = spawn(program, rest, {
    detached: true,
    cwd: job.WorkingDirectory,
    stdio: ['ignore', output, output],
    env: { SHELL: '/bin/sh', ...job.EnvironmentVariables },
  })
  writeFileSync(pidFile, String(child.pid))
  child.unref()
}

const verbs = {
  print() {
    if (!target.endsWith('/dev.svc.device')) return
    if (!existsSync(loaded)) fail(113, 'Could not find service "dev.svc.device" in domain for user gui: 501')
    const state = isRunning ? `\tstate = running\n\tpid = ${pid}` : '\tstate = not running\n\tlast exit code = 0'
    process.stdout.write(`${target} = {\n\tactive count = 1\n${state}\n}\n`)
  },
  'print-disabled': () =>
    process.stdout.write(`disabled services = {\n${existsSync(disabled) ? '\t"dev.svc.device" => disabled\n' : ''}}\n`),
  enable: () => rmSync(disabled, { force: true }),
  bootstrap() {
    if (existsSync(loaded) || existsSync(disabled)) fail(5, 'Bootstrap failed: 5: Input/output error')
    writeFileSync(loaded, readFileSync(args[2]))
    start()
  },
  kickstart: start,
  bootout() {
    if (!existsSync(loaded)) fail(3, 'Boot-out failed: 3: No such process')
    writeFileSync(leaving, '')
    if (isRunning) process.kill(pid, 'SIGTERM')
    fail(36, 'Boot-out failed: 36: Operation now in progress')
  },
}
verbs[verb]()
