import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { CallDecision, HarnessOutcome, DialogueOutput, ToolAsk } from '../../device-manager/harness/adapter.ts'
import { claudeAdapter } from '../../device-manager/harness/claude/adapter.ts'
import type { RunEventBody } from '../../shared/runs/events.ts'
import type { RunSpec } from '../../shared/runs/spec.ts'
import { specOf } from './harness-recordings.ts'

/** The folder of the real `claude`, or why there is none here. */
export function fetchClaude(): { binDir: string } | { missing: string } {
  const fetched = spawnSync(join(import.meta.dirname, '../../scripts/fetch-claude'), {
    encoding: 'utf8',
    timeout: 110_000,
  })
  if (fetched.status === 0) return { binDir: dirname(fetched.stdout.trim()) }
  return {
    missing:
      fetched.stderr.trim().split('\n').slice(-2).join(' ') || `scripts/fetch-claude ended with ${fetched.status}`,
  }
}

/** A person's machine: a home of its own, a working folder, and claude on the PATH. */
export interface ClaudeMachine {
  home: string
  cwd: string
  env: Record<string, string>
  /** Runs that have not ended yet. */
  running: Set<DrivenRun>
  /** Ends what still runs, as a failed test leaves it, and removes the folders. */
  remove(): Promise<void>
}
export function claudeMachine(options: { binDir: string; baseUrl: string; apiKey: string | null }): ClaudeMachine {
  const root = mkdtempSync(join(tmpdir(), 'svc-claude-'))
  const home = join(root, 'home')
  const cwd = join(root, 'work')
  for (const folder of [home, cwd, join(root, 'tmp')]) mkdirSync(folder)
  const env = {
    PATH: `${options.binDir}:${process.env['PATH'] ?? ''}`,
    HOME: home,
    CLAUDE_CONFIG_DIR: join(home, '.claude'),
    TMPDIR: join(root, 'tmp'),
    ANTHROPIC_BASE_URL: options.baseUrl,
    ...(options.apiKey !== null && { ANTHROPIC_API_KEY: options.apiKey }),
  }
  const running = new Set<DrivenRun>()
  const remove = async () => {
    for (const run of running) {
      // On SIGTERM claude ends its tools, which are in sessions of their own.
      run.signal('SIGTERM')
      await run.done
    }
    rmSync(root, { recursive: true, force: true, maxRetries: 5 })
  }
  return { home, cwd, env, running, remove }
}

export interface DrivenRun {
  events: RunEventBody[]
  asks: ToolAsk[]
  /** Resolves with the first event for which `is` holds, also one that came already. */
  event(is: (event: RunEventBody) => boolean): Promise<RunEventBody>
  input(text: string): void
  signal(name: NodeJS.Signals): void
  done: Promise<{ outcome: HarnessOutcome; exitCode: number | null; signal: string | null }>
}
export interface DriveOptions {
  machine: ClaudeMachine
  version: string
  spec?: Partial<RunSpec>
  decide?: (ask: ToolAsk) => CallDecision
}

/** Does what a run host does with an adapter that uses pipes: nothing in between but the pipes. */
export function driveClaude({
  machine,
  version,
  spec: changes,
  decide = () => ({ behavior: 'allow', rule: null }),
}: DriveOptions): DrivenRun {
  const spec = specOf(changes)
  const runDir = mkdtempSync(join(machine.home, 'run-'))
  const facts = {
    env: machine.env,
    cwd: machine.cwd,
    runDir,
    isRoot: process.getuid?.() === 0,
    loginShell: '/bin/sh',
    version,
  }
  const launch = claudeAdapter.command(spec, facts)
  for (const { path, content } of launch.files) writeFileSync(path, content, { mode: 0o600 })
  const session = claudeAdapter.dialogue(spec)
  const child = spawn(launch.file, launch.args, {
    cwd: machine.cwd,
    env: { ...machine.env, ...launch.env },
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const events: RunEventBody[] = []
  const asks: ToolAsk[] = []
  const waiting: { is(event: RunEventBody): boolean; found(event: RunEventBody): void }[] = []
  const apply = (output: DialogueOutput): void => {
    for (const event of output.events) {
      events.push(event)
      for (const wait of waiting) if (wait.is(event)) wait.found(event)
    }
    if (output.write !== undefined) child.stdin.write(output.write)
    if (output.closeInput === true) child.stdin.end()
    for (const ask of output.asks ?? []) {
      asks.push(ask)
      apply(session.answer(ask.askId, decide(ask)))
    }
  }
  // A harness that has left does not read what it is sent.
  child.stdin.on('error', () => {})
  child.stdout.on('data', (chunk: Buffer) => apply(session.push(chunk)))
  child.stderr.on('data', (chunk: Buffer) => apply(session.pushStderr(chunk)))
  apply(session.open())
  const run: DrivenRun = {
    events,
    asks,
    event: (is) =>
      new Promise((found) => {
        const before = events.find(is)
        if (before === undefined) waiting.push({ is, found })
        else found(before)
      }),
    input: (text) => apply(session.input(text)),
    signal: (name) => void process.kill(-(child.pid ?? 0), name),
    done: new Promise((resolve, reject) => {
      child.on('error', reject)
      child.on('close', (exitCode, signal) => {
        const exit = { exitCode, signal, stoppedFor: null }
        for (const event of session.end(exit).events) events.push(event)
        machine.running.delete(run)
        resolve({ outcome: session.outcome(exit), exitCode, signal })
      })
    }),
  }
  machine.running.add(run)
  return run
}

/** As on a person's machine: claude is found and signed in by the login shell's profile. */
export function signInClaude(homeDir: string, { binDir, modelUrl }: { binDir: string; modelUrl: string }): void {
  const profile = [
    `export PATH='${binDir}':"$PATH"`,
    `export ANTHROPIC_BASE_URL='${modelUrl}'`,
    'export ANTHROPIC_API_KEY=dummy',
    `export CLAUDE_CONFIG_DIR='${join(homeDir, '.claude')}'`,
  ]
  writeFileSync(join(homeDir, '.profile'), `${profile.join('\n')}\n`)
}
