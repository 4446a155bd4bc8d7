import { chmodSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { programUrl } from '../../shared/lib/program-file.ts'
import type { World } from '../../shared/lib/world.ts'
import type { ProviderReadiness } from '../../shared/device/protocol.ts'
import type { HarnessName } from '../../shared/runs/harnesses.ts'
import type { DaemonConfig } from '../setup/config.ts'
import type { HarnessProbe } from '../harness/adapter.ts'
import { FirstStarts } from '../harness/first-start.ts'
import { harnessDetector, type HarnessDetector } from '../harness/detect-all.ts'
import { harnessProbe, type ProbeLaunch } from '../harness/probe.ts'
import { signInFiles } from '../harness/registry.ts'
import { writePrivately } from '../setup/identity-file.ts'
import type { Log } from '../log/log.ts'
import type { Places } from '../setup/places.ts'
import { whenIdle } from '../process/idle-processors.ts'
import { envOfDaemon, probeLoginEnv } from '../process/login-env.ts'
import type { HarnessSurroundings } from '../run/hosts/harness-surroundings.ts'
import type { Isolation } from '../isolation/isolation.ts'
import { makeWall } from '../wall/wall.ts'

/** An environment older than this is probed again before a run gets it. */
const staleMs = 10 * 60_000
export interface SurroundingsOptions {
  config: DaemonConfig
  places: Places
  world: World
  log: Log
  isolation: Pick<Isolation, 'forRun'>
  /** Nobody installs programs or changes a profile here: what was looked at counts for good. */
  isFixed?: boolean
  /** The shell was asked: sign-in files may lie in other places than before. */
  envProbed?(): void
}

/** The time after which the shell is asked again once a run took the environment. */
const probeAfterMs = 2_000

/**
 * Knows what harnesses find on this machine: the person's shell environment, probed ahead of time and again behind each run
 * (docs/adr/0004), the versions of the harness programs, and a `svc` of their own.
 */
export class Surroundings implements HarnessSurroundings {
  readonly homeDir: string
  readonly shell: string
  readonly svcBinDir: string
  private readonly options: SurroundingsOptions
  private readonly detector: HarnessDetector
  private readonly firstStarts: FirstStarts
  private latest: { env: Record<string, string>; at: number } | null = null
  private probing: Promise<Record<string, string>> | null = null
  private isProbeDue = false

  constructor(options: SurroundingsOptions) {
    this.options = options
    this.homeDir = options.config.homeDir
    this.shell = options.config.shell
    this.svcBinDir = options.places.bin
    this.detector = harnessDetector({ world: options.world })
    this.firstStarts = new FirstStarts({
      stateDir: options.places.stateDir,
      world: options.world,
      log: options.log,
      within: async ({ home, env }, use) => {
        const all = { ...(await this.env()), ...env }
        return this.walled((enter) => use(harnessProbe({ env: all, homeDir: home, enter })), [home])
      },
    })
    try {
      writeSvcProgram(options.places)
    } catch (error) {
      options.log.error({ err: error }, 'the svc program for runs could not be written')
    }
  }

  env(): Record<string, string> | Promise<Record<string, string>> {
    const { world, isFixed } = this.options
    if (this.latest !== null && isFixed === true) return this.latest.env
    if (!this.latest || world.monotonic() - this.latest.at > staleMs) return this.probe()
    const { env } = this.latest
    this.probeSoon()
    return env
  }

  /** The next run sees what changes in the person's profile from now on; this one does not wait for the shell. */
  private probeSoon(): void {
    // One look follows all runs that begin until then: it comes after each of them took its environment.
    if (this.isProbeDue) return
    this.isProbeDue = true
    whenIdle(this.options.world, { few: probeAfterMs, many: probeAfterMs }, () => {
      this.isProbeDue = false
      void this.probe()
    })
  }

  /** The harness programs as they were found at most `maxAgeMs` ago. */
  async readiness(maxAgeMs: number): Promise<ProviderReadiness> {
    const ageMs = this.options.isFixed === true ? Number.POSITIVE_INFINITY : maxAgeMs
    return this.harnesses(await this.env(), (probe) => this.detector.detect(probe, ageMs))
  }

  /** The same by a look that begins after this call. The shell is asked first where its environment counts, too. */
  async readinessNow({ askShell }: { askShell: boolean }): Promise<ProviderReadiness> {
    const known = askShell ? null : this.latest
    // A probe that is under way may have read the profile before the person changed it.
    if (known === null) await this.probing
    return this.harnesses(known?.env ?? (await this.probe()), (probe) => this.detector.detectAnew(probe))
  }

  /** Files that are written when a person signs in to a harness or out of it; none before the shell was asked. */
  signInFiles(): string[] {
    return this.latest === null ? [] : signInFiles({ env: this.latest.env, homeDir: this.homeDir })
  }

  knownReadiness(): ProviderReadiness | null {
    const known = this.detector.known()
    return known && { harnesses: known }
  }

  versionOf(harness: HarnessName): string | null {
    return this.detector.versionOf(harness)
  }

  tooOld(harness: HarnessName): string | null {
    const known = this.detector.known()?.[harness]
    return known?.tooOld === true ? known.message : null
  }

  wall(): ReturnType<Isolation['forRun']> {
    return this.options.isolation.forRun()
  }

  async probe(): Promise<Record<string, string>> {
    this.probing ??= this.probeShell().finally(() => {
      this.probing = null
    })
    return this.probing
  }

  private async harnesses(
    env: Record<string, string>,
    detect: (probe: HarnessProbe) => Promise<ProviderReadiness['harnesses']>,
  ): Promise<ProviderReadiness> {
    const harnesses = await this.walled((enter) => detect(harnessProbe({ env, homeDir: this.homeDir, enter })))
    // Nobody waits for it.
    void this.firstStarts.keep(harnesses)
    return { harnesses }
  }

  /** Lets programs be started behind a wall of their own, as a run has it. `own`: folders of svc's that they may write to. */
  private async walled<Result>(
    use: (enter: <L extends ProbeLaunch>(launch: L) => L) => Promise<Result>,
    own: readonly string[] = [],
  ): Promise<Result> {
    const spec = await this.wall()
    if (spec === null) return use((launch) => launch)
    const wall = await makeWall(spec, own, this.options.world)
    try {
      return await use((launch) => ({ ...launch, ...wall.enter({ ...launch, report: '/dev/null' }), cwd: '/' }))
    } finally {
      await wall.end()
    }
  }

  private async probeShell(): Promise<Record<string, string>> {
    const { world, log } = this.options
    const options = { shell: this.shell, homeDir: this.homeDir, world, base: process.env }
    const probed = await this.walled((enter) => probeLoginEnv({ ...options, enter })).catch((error: unknown) => {
      // Whatever keeps the shell from being asked (no wall, no file left), runs get what is known without it.
      return envOfDaemon(options, error instanceof Error ? error.message : String(error))
    })
    if (probed.message) log.warn({ shell: this.shell }, probed.message)
    this.latest = { env: probed.env, at: world.monotonic() }
    this.options.envProbed?.()
    return probed.env
  }
}

/**
 * `svc` for agents inside their runs: started with the Node and the code of this daemon. Written whole or not at all: runs
 * that an earlier daemon left use it at this moment.
 */
function writeSvcProgram({ bin: folder, compileCache }: Places): void {
  const main = fileURLToPath(programUrl('cli'))
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
  const path = join(folder, 'svc')
  const cache = `NODE_COMPILE_CACHE=${quote(compileCache)} `
  const content = `#!/bin/sh\n${cache}exec ${quote(process.execPath)} --disable-warning=ExperimentalWarning ${quote(main)} "$@"\n`
  if (contentOf(path) !== content) writePrivately(path, content)
  chmodSync(path, 0o700)
}

function contentOf(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}
