import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type {
  CallDecision,
  DialogueOutput,
  HarnessAdapter,
  HarnessOutcome,
  ToolAsk,
} from '../../device-manager/harness/adapter.ts'
import type { GivenSkill } from '../../device-manager/harness/parts/skills.ts'
import { filledServers } from '../../shared/runs/filled-servers.ts'
import { launcherOf, layOut } from '../../device-manager/run-host/launch/launch.ts'
import { foldersAround, repositoryFolders } from '../../device-manager/change-set/git-file.ts'
import type { RunEventBody } from '../../shared/runs/events.ts'
import type { RunSpec } from '../../shared/runs/spec.ts'
import type { McpServer } from '../../shared/runs/mcp-servers.ts'
import { specOf } from './harness-recordings.ts'
import { Hopeless, waitFor } from './programs.ts'

// Real harnesses, driven over real pipes with nothing of the run host in between.

export type Fetched = { binDir: string } | { missing: string }

/** The folder of the real program, or why there is none here. */
export function fetchHarness(name: 'claude' | 'codex' | 'opencode' | 'qwen'): Fetched {
  const script = join(import.meta.dirname, '../../scripts/fetch-harness')
  const fetched = spawnSync(script, [name], { encoding: 'utf8', timeout: 110_000 })
  if (fetched.status === 0) return { binDir: dirname(fetched.stdout.trim()) }
  const said = fetched.stderr.trim().split('\n').slice(-2).join(' ')
  return { missing: said || `scripts/fetch-harness ended with ${fetched.status}` }
}

/** A person's machine: a home of its own, a working folder, and the harness on the PATH. */
export interface HarnessMachine {
  home: string
  cwd: string
  env: Record<string, string>
  /** Runs that have not ended yet. */
  running: Set<DrivenRun>
  /** Ends what still runs, as a failed test leaves it, and removes the folders. */
  remove(): Promise<void>
}

export function harnessMachine(
  prefix: string,
  envOf: (root: string, home: string) => Record<string, string>,
): HarnessMachine {
  const root = realpathSync(mkdtempSync(join(tmpdir(), prefix)))
  const home = join(root, 'home')
  const cwd = join(root, 'work')
  for (const folder of [home, cwd, join(root, 'tmp')]) mkdirSync(folder)
  const running = new Set<DrivenRun>()
  const remove = async () => {
    for (const run of running) {
      // On SIGTERM they end their tools, which are in sessions of their own.
      run.signal('SIGTERM')
      await run.done
    }
    rmSync(root, { recursive: true, force: true, maxRetries: 5 })
  }
  return { home, cwd, env: { HOME: home, TMPDIR: join(root, 'tmp'), ...envOf(root, home) }, running, remove }
}

/** A server of a workspace, whose tool `say` tells what the run's environment has in this variable. */
export const servedBy = (variable: string): Record<string, McpServer> => ({
  files: {
    type: 'stdio',
    command: process.execPath,
    args: [join(import.meta.dirname, 'mcp-server.mjs')],
    env: { MCP_WORD: `\${${variable}} \${NOT_SET:-else}` },
  },
})

export interface DrivenRun {
  events: RunEventBody[]
  asks: ToolAsk[]
  /** Resolves with the first event for which `is` holds, also one that came already. */
  event(is: (event: RunEventBody) => boolean): Promise<RunEventBody>
  input(text: string): void
  signal(name: NodeJS.Signals): void
  done: Promise<{ outcome: HarnessOutcome; exitCode: number | null; signal: string | null }>
}

/** Waits for a file that a tool call makes; a run that ends before is told as the failure. */
export async function fileOf(run: DrivenRun, path: string): Promise<void> {
  let end: unknown = null
  void run.done.then((how) => (end = how))
  const isThere = () => {
    if (existsSync(path)) return true
    if (end !== null) throw new Hopeless(`The run ended before: ${JSON.stringify({ end, events: run.events })}`)
    return false
  }
  await waitFor(isThere, `the tool makes ${path}`, { ms: 100_000 })
}

export interface DriveOptions {
  machine: HarnessMachine
  adapter: HarnessAdapter
  version: string
  spec?: Partial<RunSpec>
  /** As they were read for the run. */
  skills?: readonly GivenSkill[]
  firstStartDir?: string
  /** null: the question stays open. */
  decide?: (ask: ToolAsk) => CallDecision | null
  /** Sees the bytes that the dialogue reads. */
  onOutput?: (chunk: Uint8Array) => void
}

/** Does what a run host does with an adapter that uses pipes: nothing in between but the pipes. */
export function driveHarness({
  machine,
  adapter,
  version,
  spec: changes,
  skills = [],
  firstStartDir,
  decide = () => ({ behavior: 'allow', rule: null }),
  onOutput = () => {},
}: DriveOptions): DrivenRun {
  const spec = specOf({ harness: adapter.name, ...changes })
  const runDir = mkdtempSync(join(machine.home, 'run-'))
  const { servers: mcpServers } = filledServers(spec.mcpServers, machine.env)
  const facts = {
    env: machine.env,
    cwd: machine.cwd,
    foldersAround: foldersAround(machine.cwd),
    repositoryFolders: repositoryFolders(machine.cwd),
    runDir,
    isRoot: process.getuid?.() === 0,
    loginShell: '/bin/sh',
    version,
    mcpServers,
    skills,
    firstStartDir: firstStartDir ?? null,
  }
  const launch = adapter.command(spec, facts)
  layOut(runDir, launch)
  const session = adapter.dialogue(spec, { cwd: machine.cwd, mcpServers, skills })
  const events: RunEventBody[] = []
  const asks: ToolAsk[] = []
  const waiting: { is(event: RunEventBody): boolean; found(event: RunEventBody): void }[] = []
  const apply = (output: DialogueOutput): void => {
    for (const event of output.events) {
      events.push(event)
      for (const wait of waiting) if (wait.is(event)) wait.found(event)
    }
    if (output.write !== undefined) child.write(output.write)
    if (output.closeInput === true) child.closeInput()
    for (const ask of output.asks ?? []) {
      asks.push(ask)
      const decision = decide(ask)
      if (decision !== null) apply(session.answer(ask.askId, decision))
    }
  }
  const child = launcherOf(launch)({
    file: launch.file,
    args: launch.args,
    cwd: machine.cwd,
    env: { ...machine.env, ...launch.env },
    onOutput(chunk) {
      onOutput(chunk)
      apply(session.push(chunk))
    },
    onStderr: (chunk) => apply(session.pushStderr(chunk)),
  })
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
    signal: (name) => void process.kill(-child.pid, name),
    done: child.closed.then(({ exitCode, signal }) => {
      const exit = { exitCode, signal, stoppedFor: null }
      for (const event of session.end(exit).events) events.push(event)
      machine.running.delete(run)
      return { outcome: session.outcome(exit), exitCode, signal }
    }),
  }
  machine.running.add(run)
  return run
}
