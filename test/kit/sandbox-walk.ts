import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, inject } from 'vitest'
import type { RunDetail } from '../../shared/api/runs.ts'
import { sandboxPlaces } from '../../shared/runs/sandbox-places.ts'
import { startGitServer, type TestRepo } from './git-server.ts'
import { outputOf, wholeLog } from './invariants.ts'
import { delay, waitFor } from './programs.ts'
import { removeLeft, startOwnEngine, type TestEngine } from './sandbox-engine.ts'
import type { TestApi } from './system-api.ts'
import type { TestServer } from './system-server.ts'
import { TestSystem } from './system.ts'

// Cloud runs on an engine that is killed, of servers that are, with what tells whether something of them was lost.

const lines = 60
/** What was printed so long before its runner was killed is in the runner's spool. */
const settledMs = 1_000
/** Files on the volume. */
const witnesses = { printed: 'home/printed', committed: 'home/committed' } as const
const inSandbox = (file: string) => join(sandboxPlaces.work, file)

const printing = (at: string) =>
  `i=0; while [ $i -lt ${lines} ]; do i=$((i+1)); echo line $i; echo $i >${inSandbox(witnesses.printed)}; ${at} sleep 0.03; done`
const committing = `[ $i = 20 ] && echo more >>README.md && git commit -qam more && echo 1 >${inSandbox(witnesses.committed)};`

export interface Stage {
  engine: TestEngine
  git: { repo: TestRepo; close(): Promise<void> }
  /** One server with SQLite. */
  alone: Cloud
  /** Two replicas with PostgreSQL. */
  replicas: Cloud
  close(): Promise<void>
}

/** A system, and its agents: one works on a repository. */
export interface Cloud {
  system: TestSystem
  plain: string
  withRepo: string
}

export async function startStage(databaseUrl: string): Promise<Stage> {
  const engine = await startOwnEngine(inject('sandboxEngine')!.socket, 'svc-sandbox')
  const password = crypto.randomUUID()
  const host = await startGitServer({ password })
  const repo = host.repo('team/web')
  repo.git(['config', 'http.receivepack', 'true'])
  repo.commit({ 'README.md': 'first\n' })
  const serverEnv = {
    SVC_SANDBOX: 'docker',
    SVC_SANDBOX_SOCKET: engine.socket,
    SVC_SANDBOX_SMALL: '1024/1/512/1024',
    SVC_ALLOW_HOSTS: '127.0.0.1',
    SVC_SWEEP_MS: '500',
    SVC_SECRETS_KEY: 'ab'.repeat(32),
  }
  const start = async (options: Parameters<typeof TestSystem.start>[0]): Promise<Cloud> => {
    const system = await TestSystem.start({ devices: 0, serverEnv, ...options })
    const { api } = system
    const { id: repoId } = await api.insist<{ id: string }>('/repos', { gitRemote: `${host.url}/team/web` })
    const envVarName = `REPO_127_0_0_1_${host.port}_TOKEN`
    const secret = await api.insist<{ id: string }>('/secrets', { name: 'git', envVarName, value: password })
    const agent = { environment: 'cloud', harness: 'command', toolPermissionMode: 'full' }
    const plain = await api.createAgent({ ...agent, name: 'Plain', command: printing('') })
    const command = printing(committing)
    const withRepo = await api.createAgent({ ...agent, name: 'With a repository', command, defaultRepoId: repoId })
    await api.insist(`/secrets/${secret.id}/grants`, { agentId: withRepo.id })
    return { system, plain: plain.id, withRepo: withRepo.id }
  }
  const alone = await start({})
  const replicas = await start({ replicas: 2, databaseUrl })
  return {
    engine,
    git: { repo, close: () => host.close() },
    alone,
    replicas,
    async close() {
      await alone.system.stop()
      await replicas.system.stop()
      await host.close()
      // A test that failed may have left it dead, and its containers alive.
      await engine.docker('version').catch(() => engine.start())
      await removeLeft(engine)
      await engine.stop()
    },
  }
}

/** What a run wrote on its volume, seen from outside: the engine's files are of this machine. */
export class Witness {
  readonly runId: string
  private readonly folder: string
  private readonly seen: { at: number; printed: number }[] = []
  private committedAt = Number.POSITIVE_INFINITY
  private isOver = false
  private readonly watching: Promise<void>

  constructor(engine: TestEngine, runId: string) {
    this.runId = runId
    this.folder = join(engine.data, 'volumes', `svc-${runId}-1`, '_data')
    this.watching = this.watch()
  }

  private async watch(): Promise<void> {
    while (!this.isOver) {
      const printed = Number(this.read(witnesses.printed))
      if (printed > 0) this.seen.push({ at: performance.now(), printed })
      if (this.read(witnesses.committed) !== '') this.committedAt = Math.min(this.committedAt, performance.now())
      await delay(25)
    }
  }

  private read(file: string): string {
    try {
      return readFileSync(join(this.folder, file), 'utf8').trim()
    } catch {
      return ''
    }
  }

  /** The lines that were printed some time before. */
  printedBefore(at: number): number {
    return this.seen.findLast((each) => each.at < at - settledMs)?.printed ?? 0
  }

  committedBefore(at: number): boolean {
    return this.committedAt < at - settledMs
  }

  async end(): Promise<void> {
    this.isOver = true
    await this.watching
  }
}

/** Of a run that was hit at `killedAt`: one ending, and nothing is missing that is not told as lost. Returns how it ended. */
export async function checkRun(
  api: TestApi,
  { witness, repo, killedAt }: { witness: Witness; repo: TestRepo | null; killedAt: number },
): Promise<string> {
  const { runId } = witness
  let run: RunDetail | null = null
  const about = () => JSON.stringify(run)
  const hasEnded = async () => {
    run = await api.run(runId)
    return run.completedAt === null ? null : run
  }
  const { exitReason, errorMessage } = await waitFor(hasEnded, `the end of ${runId}`, { ms: 150_000, about })
  await witness.end()
  const events = await api.events(runId)
  const told = `${runId} ${exitReason}: ${errorMessage}\n${JSON.stringify(events.slice(-5))}`
  const isDeclared = /\bis lost\b|could not be pushed/.test(errorMessage ?? '')
  // A run that its runner did not end has no event of its ending.
  if (events.some(({ kind }) => kind === 'ended')) wholeLog(events, exitReason!)
  else {
    expect(
      events.map(({ seq }) => seq),
      told,
    ).toEqual(events.map((_, at) => at + 1))
    expect(isDeclared || events.length === 0, told).toBe(true)
  }
  const { output, gapBytes } = outputOf(events)
  const wanted = Array.from({ length: lines }, (_, at) => `line ${at + 1}\r\n`)
  if (gapBytes === 0) expect(wanted.join('').startsWith(output.toString()), `${told}\n${output.toString()}`).toBe(true)
  const printed = output.toString().split('\n').length - 1
  if (exitReason === 'completed') expect(printed, told).toBe(lines)
  else expect(['sandbox_lost', 'dispatch_error'], told).toContain(exitReason)
  if (!isDeclared && gapBytes === 0) expect(printed, told).toBeGreaterThanOrEqual(witness.printedBefore(killedAt))
  if (repo !== null && !isDeclared && (exitReason === 'completed' || witness.committedBefore(killedAt)))
    expect(textsOf(repo, runId), told).toContain('first\nmore')
  return isDeclared ? `${exitReason}, declared` : exitReason!
}

/** The file on the branches of a run. */
const textsOf = (repo: TestRepo, runId: string): string[] =>
  repo
    .git(['for-each-ref', '--format=%(refname)', `refs/heads/svc/${runId}`, `refs/heads/svc/rescue/${runId}`])
    .split('\n')
    .filter(Boolean)
    .map((ref) => repo.git(['show', `${ref}:README.md`]))

/** No container, no volume, and no folder or socket of a broker is there any more. */
export async function nothingLeft(engine: TestEngine, servers: readonly TestServer[]): Promise<void> {
  let left: string[] = []
  const isGone = async () => {
    const ids = async (...args: readonly string[]) => (await engine.docker(...args)).split('\n').filter(Boolean)
    const folders = servers.map(({ dataDir }) => join(dataDir, 'sandboxes')).filter((folder) => existsSync(folder))
    left = [
      ...(await ids('ps', '--all', '--format', '{{.Names}} {{.Status}}')),
      ...(await ids('volume', 'ls', '--quiet')),
      ...folders.flatMap((folder) => readdirSync(folder)),
    ]
    return left.length === 0
  }
  await waitFor(isGone, 'an engine and servers with nothing left', { ms: 150_000, about: () => left.join('\n') })
}
