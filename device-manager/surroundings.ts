import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { programUrl } from '../shared/lib/program-file.ts'
import type { World } from '../shared/lib/world.ts'
import type { ProviderReadiness } from '../shared/device/protocol.ts'
import type { DaemonConfig } from './config.ts'
import { harnessDetector, type HarnessDetector } from './harness/detect-all.ts'
import { harnessProbe } from './harness/probe.ts'
import type { Log } from './log.ts'
import type { Places } from './places.ts'
import { probeLoginEnv } from './process/login-env.ts'
import type { HarnessSurroundings } from './run/run-hosts.ts'

/** An environment older than this is probed again before a run gets it. */
const staleMs = 10 * 60_000
/** How long after a run took the environment the shell is asked again. */
const probeAfterMs = 2_000

/**
 * What harnesses find on this machine: the person's shell environment, probed ahead of time and again behind each run
 * (docs/adr/0004), the versions of the harness programs, and a `svc` of their own.
 */
export class Surroundings implements HarnessSurroundings {
  readonly homeDir: string
  readonly shell: string
  readonly svcBinDir: string
  private readonly options: { config: DaemonConfig; places: Places; world: World; log: Log }
  private readonly detector: HarnessDetector
  private latest: { env: Record<string, string>; at: number } | null = null
  private probing: Promise<Record<string, string>> | null = null
  private isProbeDue = false

  constructor(options: { config: DaemonConfig; places: Places; world: World; log: Log }) {
    this.options = options
    this.homeDir = options.config.homeDir
    this.shell = options.config.shell
    this.svcBinDir = options.places.bin
    this.detector = harnessDetector({ world: options.world })
    writeSvcProgram(options.places)
  }

  env(): Record<string, string> | Promise<Record<string, string>> {
    const { world } = this.options
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
    this.options.world.after(probeAfterMs, () => {
      this.isProbeDue = false
      void this.probe()
    })
  }

  /** Looks at the harness programs now. */
  async readiness(maxAgeMs = 0): Promise<ProviderReadiness> {
    const probe = harnessProbe({ env: await this.env(), homeDir: this.homeDir })
    return { harnesses: await this.detector.detect(probe, maxAgeMs) }
  }

  knownReadiness(): ProviderReadiness | null {
    const known = this.detector.known()
    return known && { harnesses: known }
  }

  versionOf(harness: Parameters<HarnessDetector['versionOf']>[0]): string | null {
    return this.detector.versionOf(harness)
  }

  async probe(): Promise<Record<string, string>> {
    this.probing ??= this.probeShell().finally(() => {
      this.probing = null
    })
    return this.probing
  }

  private async probeShell(): Promise<Record<string, string>> {
    const { world, log } = this.options
    const probed = await probeLoginEnv({ shell: this.shell, homeDir: this.homeDir, world, base: process.env })
    if (probed.message) log.warn({ shell: this.shell }, probed.message)
    this.latest = { env: probed.env, at: world.monotonic() }
    return probed.env
  }
}

/** `svc` for agents inside their runs: started with the Node and the code of this daemon. */
function writeSvcProgram({ bin: folder, compileCache }: Places): void {
  const main = fileURLToPath(programUrl('cli'))
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
  const path = join(folder, 'svc')
  const cache = `NODE_COMPILE_CACHE=${quote(compileCache)} `
  const content = `#!/bin/sh\n${cache}exec ${quote(process.execPath)} --disable-warning=ExperimentalWarning ${quote(main)} "$@"\n`
  writeFileSync(path, content, { mode: 0o700 })
  chmodSync(path, 0o700)
}
